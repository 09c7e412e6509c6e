package toolspan

import (
	"encoding/json"
	"testing"
)

func FuzzEventsAreReadAsEncodingJSONReadsThem(f *testing.F) {
	for _, text := range []string{
		`[]`, ` [ ] `, `[{}]`, `[{"type":"done","op":1,"result":{"a":["]}\\\"",{"b":null}]}}]`, `[{"type":"host_call","op":2,"call":3,` +
			`"kind":"log","handler":4,"payload":"x"},{"type":"failed","op":5,"error":{"code":"closed","message":"m","retryable":false}}]`,
		`[ {"op" : 7 , "unknown" : [ 1 , 2 ] , "result" : 1.50 } ]`, `[`, `[{`, `[{"op"`, `[{"op":"x"}]`, `[{"type":"\\`, `[]]`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got []event
		err := readEvents(text, &got)
		var want []event
		// Only what the library writes has to be read; anything else must not crash, nor be read as something else.
		if err != nil || json.Unmarshal(text, &want) != nil {
			return
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d events instead of %d", text, len(got), len(want))
		}
	})
}

func TestEventsKeepTheTextOfWhatPassesThrough(t *testing.T) {
	var got []event
	text := `[{"type":"done","op":18446744073709551615,"result":{"b":1.0,"a":"]}\"\\"}},{"type":"host_call","op":2,"call":3,"kind":"k","handler":4,"payload":[1 , 2]}]`
	if err := readEvents([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Op != 1<<64-1 || string(got[0].Result) != `{"b":1.0,"a":"]}\"\\"}` || string(got[1].Payload) != `[1 , 2]` ||
		got[1].Kind != "k" || got[1].Call != 3 || got[1].Handler != 4 {
		t.Fatalf("got %+v", got)
	}
	for _, bad := range []string{``, `[`, `[{]`, `{}`, `[{"op":-1}]`, `[]x`, `[{"type":1}]`, `[{} {}]`, `[{"result":"`} {
		if err := readEvents([]byte(bad), &got); err == nil {
			t.Errorf("%s is read", bad)
		}
	}
}
