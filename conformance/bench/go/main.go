// The scenario from Go, through the public API. See ../src/lib.rs for what it prints.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"toolspan.dev/toolspan"
)

func main() {
	var plan struct {
		BaseURL      string
		Command      []string
		WarmUp, Runs int
	}
	must(json.Unmarshal([]byte(os.Getenv("BENCH")), &plan))
	ctx := context.Background()
	toolkit, err := toolspan.NewToolkit(ctx, toolspan.MCPServers(map[string]toolspan.MCPServer{"calc": {Command: plan.Command}}))
	must(err)
	client, err := toolspan.NewClient(toolspan.ClientOptions{BaseURL: plan.BaseURL, Style: toolspan.OpenAI, Model: "bench"})
	must(err)
	times := []float64{}
	for run := range plan.WarmUp + plan.Runs {
		start := time.Now()
		result, err := client.Run(ctx, "What is 2 + 2, twice?", toolkit)
		must(err)
		if run >= plan.WarmUp {
			times = append(times, float64(time.Since(start).Nanoseconds())/1e3)
		}
		if len(result.ToolCalls) != 2 {
			log.Fatalf("%d tool calls instead of 2", len(result.ToolCalls))
		}
	}
	must(toolkit.Close())
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(float64(len(times)-1)*share+0.5)] }
	fmt.Printf("{\"median_us\":%.1f,\"p95_us\":%.1f,\"runs\":%d}\n", at(0.5), at(0.95), len(times))
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
