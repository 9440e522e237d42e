// SPDX-License-Identifier: Apache-2.0

// Command satchel shows what Satchel installed on a Kubernetes cluster, and what a bundle would install. Under the name
// kubectl-satchel it is a plugin of kubectl.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may name any of the providers that kubectl knows

	"github.com/satchel-dev/satchel/internal/cli"
	"github.com/satchel-dev/satchel/internal/cli/inspect"
	"github.com/satchel-dev/satchel/internal/cli/program"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	child.Main(inspect.Handlers())
	os.Exit(program.Main(cli.Run, version))
}
