// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/runtime/logger"

	"github.com/satchel-dev/satchel/internal/visible"
)

// TestM30LogsHideNothing logs strings of a tenant in every part of an entry.
func TestM30LogsHideNothing(t *testing.T) {
	const hostile = "a\u202eb\u200bc\x1b[2J\u0085d\u2028e\x7f"
	for _, encoding := range []string{"json", "console"} {
		var out bytes.Buffer
		log := newLogger(logger.Options{LogEncoding: encoding, LogLevel: "debug"}, &out)
		log.WithName(hostile).WithValues("value", hostile, "of", map[string]string{hostile: hostile}).Info(hostile, "list", []string{hostile})
		log.Error(errors.New(hostile), hostile)
		log.V(1).Info("debugging")
		log.V(2).Info("tracing")
		text := out.String()
		if strings.ContainsFunc(strings.NewReplacer("\n", "", "\t", "").Replace(text), visible.Hidden) {
			t.Errorf("%s: something is hidden: %q", encoding, text)
		}
		if !strings.Contains(text, "debugging") || strings.Contains(text, "tracing") {
			t.Errorf("%s: the level is not debug: %s", encoding, text)
		}
		if encoding != "json" {
			continue
		}
		var entry struct{ Level, Msg, Value string }
		if err := json.Unmarshal([]byte(strings.SplitN(text, "\n", 2)[0]), &entry); err != nil || entry.Msg != hostile || entry.Value != hostile || entry.Level != "info" {
			t.Errorf("an entry is read as %+v: %v", entry, err)
		}
	}
}
