package toolspan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

// The program's own HTTP client for requests to the model (SPEC 7.1 httpClient).

// readSize is how much of a body is handed over at a time, at most.
const readSize = 64 << 10

// body is an answer that is being read.
type body struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// withoutRedirects is the client that leaves redirects to the library: it knows which headers may go where.
func withoutRedirects(client *http.Client) *http.Client {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// sendRequest sends one request; the body of the answer is read piece by piece.
func sendRequest(call hostCall) (any, error) {
	about, err := begin[struct {
		Method, URL, Body string
		Headers           [][2]string
	}](call)
	if err != nil {
		return nil, err
	}
	// The body is read after this call has ended, so the request has a life of its own.
	ctx, cancel := context.WithCancel(context.WithoutCancel(call.ctx))
	stop := context.AfterFunc(call.ctx, cancel)
	response, err := exchange(ctx, call.function.(*http.Client), about.Method, about.URL, about.Headers, about.Body)
	if !stop() && err == nil {
		response.Body.Close()
		err = context.Cause(call.ctx)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	headers := [][2]string{}
	for name, values := range response.Header {
		for _, value := range values {
			headers = append(headers, [2]string{name, value})
		}
	}
	stream, err := call.operation.keepBody(&body{response.Body, cancel})
	if err != nil {
		return nil, err
	}
	return struct {
		Status  int         `json:"status"`
		Headers [][2]string `json:"headers"`
		Stream  uint64      `json:"stream"`
	}{response.StatusCode, headers, stream}, nil
}

func exchange(ctx context.Context, client *http.Client, method, url string, headers [][2]string, content string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(content)))
	if err != nil {
		return nil, err
	}
	for _, header := range headers {
		request.Header.Add(header[0], header[1])
	}
	return client.Do(request)
}

func (o *operation) keepBody(b *body) (uint64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		go b.Close()
		return 0, errors.New("the operation has ended")
	}
	if o.bodies == nil {
		o.bodies = map[uint64]*body{}
	}
	number := uint64(len(o.bodies)) + 1
	o.bodies[number] = b
	return number, nil
}

// readBody gives the next piece of a body. One that ends or fails is closed.
func readBody(call hostCall) (any, error) {
	o := call.operation
	number, b, err := o.body(call.payload)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(call.ctx, b.cancel)
	defer stop()
	piece := make([]byte, readSize)
	count, err := b.Read(piece)
	// A reader may give nothing and no error.
	if count > 0 || err == nil {
		return struct {
			Data []byte `json:"data"`
		}{piece[:count]}, nil
	}
	o.dropBody(number)
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return struct {
		End bool `json:"end"`
	}{true}, nil
}

func (o *operation) body(payload json.RawMessage) (uint64, *body, error) {
	about, err := decoded[struct{ Stream uint64 }](payload)
	if err != nil {
		return 0, nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if b := o.bodies[about.Stream]; b != nil {
		return about.Stream, b, nil
	}
	return 0, nil, errors.New("the body was closed")
}

// closeBody is for a body that nobody reads any more.
func (o *operation) closeBody(payload json.RawMessage) {
	if number, _, err := o.body(payload); err == nil {
		o.dropBody(number)
	}
}

func (o *operation) dropBody(number uint64) {
	o.mu.Lock()
	b := o.bodies[number]
	if b != nil {
		o.bodies[number] = nil
	}
	o.mu.Unlock()
	if b != nil {
		_ = b.Close()
	}
}
