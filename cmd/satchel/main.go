// SPDX-License-Identifier: Apache-2.0

// Command satchel shows what Satchel installed on a Kubernetes cluster, and what a bundle would install. Under the name
// kubectl-satchel it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may name any of the providers that kubectl knows
	"k8s.io/klog/v2"

	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	child.Main(inspect.Handlers())
	klog.SetLogger(logr.Discard()) // what client libraries log is for programmers; errors are told anyway
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first Ctrl-C cleans up, a second one ends at once
	code := cli.Run(ctx, kit.Program{
		Path:    os.Args[0],
		Streams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		Version: kit.BuildVersion(version),
		Now:     time.Now,
	}, os.Args[1:])
	stop()
	os.Exit(code)
}
