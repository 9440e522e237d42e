// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"io"

	"github.com/fluxcd/pkg/runtime/logger"
	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/satchel-dev/satchel/internal/visible"
)

// newLogger is Flux's logger.NewLogger with a writer that escapes invisible characters: the lines contain messages of
// tenants' objects and servers.
func newLogger(o logger.Options, out io.Writer) logr.Logger {
	encoded := zap.JSONEncoder
	level := logger.LowercaseLevelEncoder
	if o.LogEncoding == "console" {
		encoded, level = zap.ConsoleEncoder, logger.CapitalLevelEncoder
	}
	levels := map[string]zapcore.Level{"trace": zapcore.DebugLevel - 1, "debug": zapcore.DebugLevel, "error": zapcore.ErrorLevel}
	stacks := zapcore.PanicLevel
	if o.LogLevel == "trace" || o.LogLevel == "debug" {
		stacks = zapcore.ErrorLevel
	}
	return zap.New(encoded(func(config *zapcore.EncoderConfig) {
		config.EncodeTime, config.EncodeLevel = zapcore.ISO8601TimeEncoder, level
	}), zap.Level(levels[o.LogLevel]), zap.StacktraceLevel(stacks), zap.WriteTo(visible.Writer(out)))
}
