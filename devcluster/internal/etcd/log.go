package etcd

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/credence-id/credence/devcluster/internal/quiet"
)

// logger writes to stderr, up to errors and none that a good start makes. What
// etcd would end the process with goes to end instead: it is returned, not logged.
func logger(level zap.AtomicLevel, end ending) *zap.Logger {
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339TimeEncoder
	stderr := zapcore.Lock(zapcore.AddSync(quiet.Writer{To: os.Stderr, Routine: routine()}))
	enabled := zap.LevelEnablerFunc(func(l zapcore.Level) bool {
		return level.Enabled(l) && l <= zapcore.ErrorLevel
	})
	core := zapcore.NewCore(zapcore.NewConsoleEncoder(encoding), stderr, enabled)
	return zap.New(core, zap.WithPanicHook(end), zap.WithFatalHook(end)).Named("etcd")
}

// ending takes the place of the exit or the panic that a fatal entry ends in,
// with the error of that entry. The goroutine that logged it goes no further.
type ending chan error

func (e ending) OnWrite(entry *zapcore.CheckedEntry, fields []zapcore.Field) {
	cause := errors.New(entry.Message)
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			cause = fmt.Errorf("%s: %w", entry.Message, err)
		}
	}
	select {
	case e <- cause:
	default: // the first one is the cause of the others
	}
	runtime.Goexit()
}

// routine is in what an empty member logs: it looks for its version before its
// first commit, and later looks again.
func routine() []string {
	return []string{"schema version", "failed to update storage version"}
}
