// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"os"
	"testing"
	"time"

	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/clirig"
	"github.com/satchel-dev/satchel/tests/controlplane"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	os.Exit(controlplane.RunMain(m))
}

// testCluster is a namespace of the shared control plane, in which the test plays the controllers.
type testCluster struct{ clirig.Cluster }

func newTestCluster(t *testing.T) testCluster {
	t.Helper()
	return testCluster{clirig.New(t, Run)}
}

// migrate runs a command line of the plugin.
func migrate(t *testing.T, args ...string) clirig.Outcome {
	t.Helper()
	return clirig.Runner(Run).Run(t, "/usr/local/bin/"+File, time.Now, args...)
}
