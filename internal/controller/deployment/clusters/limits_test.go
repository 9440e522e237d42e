// SPDX-License-Identifier: Apache-2.0

package clusters_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/satchel-dev/satchel/internal/controller/deployment/clusters"
)

// Each flag is accepted with its default, and refused by its name where nothing could be done with it.
func TestLimitsAreChecked(t *testing.T) {
	bound := func(args ...string) (*clusters.Limits, error) {
		limits, flags := &clusters.Limits{}, pflag.NewFlagSet("test", pflag.ContinueOnError)
		limits.BindFlags(flags)
		if err := flags.Parse(args); err != nil {
			t.Fatal(err)
		}
		return limits, limits.Validate()
	}
	if got, err := bound(); err != nil || *got != clusters.Default() {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, arg := range []string{"--remote-clusters=0", "--remote-clusters=-1", "--concurrent-remote=0", "--watches-per-cluster=0"} {
		if _, err := bound(arg); err == nil || !strings.Contains(err.Error(), strings.Split(arg, "=")[0]+" is ") {
			t.Errorf("%s: got %v", arg, err)
		}
	}
}
