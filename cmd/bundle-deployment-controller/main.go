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
	"github.com/satchel-dev/satchel/internal/controller/deployment/process"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	child.Main(jobs.Handlers())
	common := manager.Options{Version: version}
	var options process.Options
	flags := pflag.NewFlagSet(deployment.FieldManager, pflag.ContinueOnError)
	options.BindFlags(flags)
	os.Exit(manager.Main(deployment.FieldManager, &common, flags, os.Args[1:], func(ctx context.Context, mgr ctrl.Manager) error {
		options.Namespace = common.Namespace
		_, err := options.Setup(ctx, mgr, common.Concurrent, common.Shard)
		return err
	}))
}
