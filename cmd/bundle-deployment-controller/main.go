// SPDX-License-Identifier: Apache-2.0

// Command bundle-deployment-controller installs the artifacts that
// BundleDeployments refer to, and corrects drift from their bundles.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/controller/deployment"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	child.Main(jobs.Handlers())
	process := manager.Options{Version: version}
	var options deployment.Options
	flags := pflag.NewFlagSet(deployment.FieldManager, pflag.ContinueOnError)
	options.BindFlags(flags)
	os.Exit(manager.Main(deployment.FieldManager, &process, flags, os.Args[1:], func(ctx context.Context, mgr ctrl.Manager) error {
		options.Namespace = process.Namespace
		return options.Setup(ctx, mgr, process.Concurrent, process.Shard)
	}))
}
