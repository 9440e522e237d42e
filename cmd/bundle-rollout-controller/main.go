// SPDX-License-Identifier: Apache-2.0

// Command bundle-rollout-controller moves the BundleDeployments of a BundleRollout, one a cluster, from revision to
// revision in waves.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/controller/rollout"
	"github.com/satchel-dev/satchel/internal/controller/rollout/children"
	"github.com/satchel-dev/satchel/internal/manager"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	process := manager.Options{Version: version, Trim: children.Trim}
	var options rollout.Options
	flags := pflag.NewFlagSet(rollout.FieldManager, pflag.ContinueOnError)
	options.BindFlags(flags)
	os.Exit(manager.Main(rollout.FieldManager, &process, flags, os.Args[1:], func(_ context.Context, mgr ctrl.Manager) error {
		return options.Setup(mgr, process.Concurrent, process.Shard)
	}))
}
