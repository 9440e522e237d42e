// SPDX-License-Identifier: Apache-2.0

// Command bundle-source-controller fetches what BundleSources refer to and
// publishes it as immutable artifacts over HTTP.
package main

import (
	"context"
	"os"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/satchel-dev/satchel/internal/controller/source"
	"github.com/satchel-dev/satchel/internal/controller/source/process"
	"github.com/satchel-dev/satchel/internal/controller/sourceusers"
	"github.com/satchel-dev/satchel/internal/manager"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/indexing"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	child.Main(indexing.Handlers())
	common := manager.Options{Version: version, Trim: sourceusers.Trim, Concurrent: process.Concurrent}
	var options process.Options
	flags := pflag.NewFlagSet(source.FieldManager, pflag.ContinueOnError)
	options.BindFlags(flags)
	os.Exit(manager.Main(source.FieldManager, &common, flags, os.Args[1:], func(_ context.Context, mgr ctrl.Manager) error {
		return options.Setup(mgr, common.Concurrent, common.Shard)
	}))
}
