// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestMainCommandLine(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   int
	}{
		"help":     {"help was asked for and given", []string{"--help"}, 0},
		"version":  {"as was the version", []string{"--version"}, 0},
		"argument": {"who forgets the dashes must be told", []string{"--concurrent=2", "enable-leader-election"}, 2},
		"flag":     {"a misspelt flag has no effect otherwise", []string{"--concurent=2"}, 2},
		"both":     {"a wrong command line is wrong with --version, too", []string{"--version", "x"}, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			never := func(context.Context, ctrl.Manager) error { return errors.New("nothing is to be set up") }
			if got := Main("test", &Options{Version: "v1.2.3"}, flagSet(), tc.args, never); got != tc.want {
				t.Errorf("exit code %d where %d was expected: %s", got, tc.want, tc.reason)
			}
		})
	}
}

func TestParseNamesTheArgument(t *testing.T) {
	err := new(Options).parse(flagSet(), []string{"first", "second"})
	if err == nil || !strings.Contains(err.Error(), `"first"`) {
		t.Errorf("got %v, want an error that names the argument", err)
	}
}

// Profiles are served on loopback only.
func TestProfilesAreLocal(t *testing.T) {
	for address, fine := range map[string]bool{
		"0": true, "127.0.0.1:6060": true, "[::1]:6060": true,
		":6060": false, "0.0.0.0:6060": false, "10.1.2.3:6060": false, "localhost": false, "": false,
	} {
		if err := new(Options).parse(flagSet(), []string{"--pprof-addr=" + address}); (err == nil) != fine {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestVersion(t *testing.T) {
	if got := version("v1.2.3"); got != "v1.2.3" {
		t.Errorf("got %q where the linker said v1.2.3", got)
	}
	if got := version(""); got == "" || got == "(devel)" {
		t.Errorf("got %q for a binary of which the linker said nothing", got)
	}
}

func flagSet() *pflag.FlagSet {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}
