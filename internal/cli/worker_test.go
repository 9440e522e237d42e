// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/worker"
)

// TestWorkerProcesses starts processes only for commands that read bundles, and leaves none behind: a closed pool has none.
func TestWorkerProcesses(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		read bool
	}{
		"version":            {[]string{"version", "--client"}, ExitOK, false},
		"help":               {[]string{"--help"}, ExitOK, false},
		"help of a reader":   {[]string{"render", "--help"}, ExitOK, false},
		"completion":         {[]string{"completion", "bash"}, ExitOK, false},
		"wrong flag":         {[]string{"render", "--foo"}, ExitError, false},
		"no such folder":     {[]string{"render", "./none", "--install-namespace", "demo"}, ExitError, false},
		"a bundle":           {[]string{"render", bundles + "plain", "--install-namespace", "demo"}, ExitOK, true},
		"an unusable bundle": {[]string{"render", bundles, "--install-namespace", "demo"}, ExitError, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			a := testApp(&out)
			a.streams = genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
			if code := a.run(t.Context(), tc.args); code != tc.code {
				t.Errorf("exit %d, want %d: %s", code, tc.code, errOut.String())
			}
			if (a.pool != nil) != tc.read {
				t.Fatalf("a pool of workers: %t, want %t", a.pool != nil, tc.read)
			}
			if !tc.read {
				return
			}
			if _, err := a.pool.Run(t.Context(), worker.Request{Kind: "convert"}); !errors.Is(err, worker.ErrClosed) {
				t.Errorf("the pool is not closed: %v", err)
			}
		})
	}
}
