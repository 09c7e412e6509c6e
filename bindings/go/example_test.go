package toolspan_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"toolspan.dev/toolspan"
)

func ExampleTool() {
	type distance struct {
		Value float64 `json:"value" jsonschema:"How far"`
		Unit  string  `json:"unit,omitempty" jsonschema:"description=The unit,enum=km,enum=mi"`
	}
	walk := toolspan.Tool("walk", "Tell how long a walk takes", func(ctx context.Context, in distance) (string, error) {
		if in.Value < 0 {
			return "", errors.New("that is no distance")
		}
		return fmt.Sprintf("%.0f minutes", in.Value*12), nil
	})
	fmt.Println(string(walk.InputSchema))

	ctx := context.Background()
	toolkit, err := toolspan.NewToolkit(ctx, toolspan.Tools(walk))
	if err != nil {
		log.Fatal(err)
	}
	defer toolkit.Close()
	result, err := toolkit.Execute(ctx, "walk", distance{Value: 5})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Output)
	// Output:
	// {"type":"object","properties":{"value":{"type":"number","description":"How far"},"unit":{"type":"string","description":"The unit","enum":["km","mi"]}},"required":["value"]}
	// 60 minutes
}

func ExampleError() {
	_, err := toolspan.NewClient(toolspan.ClientOptions{BaseURL: "https://api.example.com/v1", Style: toolspan.OpenAI, Model: "m", MaxTurns: toolspan.Ptr(0)})
	var failure *toolspan.Error
	if errors.Is(err, toolspan.ErrInvalidConfig) && errors.As(err, &failure) {
		fmt.Println(failure.Code, *failure.Path)
	}
	// Output: invalid_config maxTurns
}

func ExampleClient_Stream() {
	client, err := toolspan.NewClient(toolspan.ClientOptions{BaseURL: "https://api.example.com/v1", Style: toolspan.OpenAI, Model: "m"})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range client.Stream(context.Background(), "Tell me a story", nil) {
		if err != nil {
			log.Fatal(err)
		}
		switch event := event.(type) {
		case toolspan.TextEvent:
			fmt.Print(event.Delta)
		case toolspan.ToolCallEvent:
			fmt.Fprintf(os.Stderr, "[%s %s]\n", event.Name, event.Args)
		}
	}
}
