// SPDX-License-Identifier: Apache-2.0

// Command demo shows Satchel's main job with everything real: a Kubernetes control plane, both controllers
// as processes of their own with the permissions that config/rbac grants, a registry and a Git server. It installs
// a bundle from each, breaks what it installed, shows it repaired, and upgrades by a Git commit. Everything it
// shows it also checks.
//
// It runs from the root of the repository after `make build`; `make demo` does both. It goes on until it is
// interrupted, or ends by itself with -once or DEMO_ONCE=1; the exit code is 0 only when every check held.
// With -servers (make dev) it only starts the servers and says how to use them.
// With -kubeconfig (or DEMO_CLUSTER=existing, for $KUBECONFIG) it uses an existing cluster and cleans up.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	if len(os.Args) == 3 && os.Args[1] == guardCommand {
		os.Exit(guard(os.Args[2], os.Stdin))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	options, err := parse(os.Args[1:], os.Getenv)
	if err == nil {
		err = run(ctx, options)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintf(os.Stderr, "\ndemo: %v\n", err)
		os.Exit(1)
	}
}

// options are what the caller can choose.
type options struct {
	once       bool
	servers    bool   // only start the servers, and wait
	kubeconfig string // of an existing cluster; empty for a control plane of its own
}

// parse reads flags and the environment; flags win.
func parse(args []string, env func(string) string) (options, error) {
	o := options{once: env("DEMO_ONCE") != "" && env("DEMO_ONCE") != "0"}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.BoolVar(&o.once, "once", o.once, "end after the last step instead of waiting for Ctrl-C (DEMO_ONCE=1)")
	flags.BoolVar(&o.servers, "servers", false, "only start the control plane, the controllers, a registry and a Git server, say how to use them, and wait for Ctrl-C")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "use the cluster of this kubeconfig (DEMO_CLUSTER=existing takes $KUBECONFIG)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch choice := env("DEMO_CLUSTER"); {
	case o.kubeconfig != "" || choice == "" || choice == "own":
	case choice == "existing" && env("KUBECONFIG") != "":
		o.kubeconfig = env("KUBECONFIG")
	case choice == "existing":
		return o, errors.New("DEMO_CLUSTER=existing needs KUBECONFIG: set it to the kubeconfig of the cluster")
	default:
		return o, fmt.Errorf("DEMO_CLUSTER=%s: use own or existing", choice)
	}
	return o, nil
}
