// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/tests/clirig"
)

// What clirig has for all command lines.
var (
	golden     = clirig.Golden
	hiddenIn   = clirig.HiddenIn
	quoted     = clirig.Quoted
	writeFiles = clirig.WriteFiles
)

const steering = clirig.Steering

type outcome = clirig.Outcome

// satchel runs a command line.
func satchel(t *testing.T, args ...string) outcome {
	t.Helper()
	return runAs(t, "/usr/local/bin/satchel", time.Now, args...)
}

func runAs(t *testing.T, path string, now func() time.Time, args ...string) outcome {
	t.Helper()
	return clirig.Runner(Run).Run(t, path, now, args...)
}

func testApp(out *bytes.Buffer) *kit.App {
	return newApp(kit.Program{
		Path: "satchel", Now: func() time.Time { return noon },
		Streams: genericiooptions.IOStreams{Out: out, ErrOut: out},
	})
}
