// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A mark is never within an entry, which the API server may be about to write.
func TestMarksAreBetweenEntries(t *testing.T) {
	entry := strings.Repeat("x", 1000) + "\n"
	for name, c := range map[string]struct {
		log  string
		want int
	}{
		"nothing yet":  {"", 0},
		"first":        {"{\"a", 0},
		"complete":     {"{}\n{}\n", 6},
		"half written": {"{}\n{\"a", 3},
		"a long log":   {strings.Repeat(entry, 1000) + "{\"a", 1000 * len(entry)},
	} {
		t.Run(name, func(t *testing.T) {
			cp := &ControlPlane{audit: filepath.Join(t.TempDir(), "audit.log")}
			if err := os.WriteFile(cp.audit, []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := cp.lineStart(int64(len(c.log))); err != nil || got != int64(c.want) {
				t.Errorf("%d, want %d (%v)", got, c.want, err)
			}
		})
	}
}
