// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/program"
	"github.com/satchel-dev/satchel/internal/worker"
)

// TestWorkerProcesses starts processes only for commands that read bundles, and leaves none behind: a closed pool has none.
func TestWorkerProcesses(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		code int
		read bool
	}{
		"version":            {[]string{"version", "--client"}, kit.ExitOK, false},
		"help":               {[]string{"--help"}, kit.ExitOK, false},
		"help of a reader":   {[]string{"render", "--help"}, kit.ExitOK, false},
		"completion":         {[]string{"completion", "bash"}, kit.ExitOK, false},
		"wrong flag":         {[]string{"render", "--foo"}, kit.ExitError, false},
		"no such folder":     {[]string{"render", "./none", "--install-namespace", "demo"}, kit.ExitError, false},
		"a bundle":           {[]string{"render", bundles + "plain", "--install-namespace", "demo"}, kit.ExitOK, true},
		"an unusable bundle": {[]string{"render", bundles, "--install-namespace", "demo"}, kit.ExitError, true},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer
			a := testApp(&out)
			a.Streams = genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &out, ErrOut: &errOut}
			if code := program.Execute(t.Context(), a, rootCommand(a), tc.args); code != tc.code {
				t.Errorf("exit %d, want %d: %s", code, tc.code, errOut.String())
			}
			if (a.Pool != nil) != tc.read {
				t.Fatalf("a pool of workers: %t, want %t", a.Pool != nil, tc.read)
			}
			if !tc.read {
				return
			}
			if _, err := a.Pool.Run(t.Context(), worker.Request{Kind: "convert"}); !errors.Is(err, worker.ErrClosed) {
				t.Errorf("the pool is not closed: %v", err)
			}
		})
	}
}
