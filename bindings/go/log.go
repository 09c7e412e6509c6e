package toolspan

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// LogTo makes an [EngineOptions].Log of a handler. The fields of a record become attributes, its target the attribute "target".
func LogTo(handler slog.Handler) func(LogRecord) {
	return func(record LogRecord) {
		level := map[LogLevel]slog.Level{
			LogDebug: slog.LevelDebug, LogInfo: slog.LevelInfo, LogWarn: slog.LevelWarn, LogError: slog.LevelError,
		}[record.Level]
		if !handler.Enabled(context.Background(), level) {
			return
		}
		out := slog.NewRecord(time.Now(), level, record.Message, 0)
		out.AddAttrs(slog.String("target", record.Target))
		var fields map[string]any
		_ = json.Unmarshal(record.Fields, &fields)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			out.AddAttrs(slog.Any(name, fields[name]))
		}
		_ = handler.Handle(context.Background(), out)
	}
}
