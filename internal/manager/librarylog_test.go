// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"log"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Messages of net/http that an upstream causes are not written as lines of the log.
func TestLibrariesDoNotWriteLines(t *testing.T) {
	var lines []string
	ctrl.SetLogger(funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{Verbosity: 1}))
	log.New(libraryLog{}, "", 0).Print("an upstream sent\n{\"level\":\"error\"}" + strings.Repeat("x", 10_000))
	if len(lines) != 1 || strings.Contains(lines[0], "\n") || len(lines[0]) > 700 {
		t.Errorf("logged: %q", lines)
	}
}
