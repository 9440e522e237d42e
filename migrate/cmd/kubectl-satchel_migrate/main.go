// SPDX-License-Identifier: Apache-2.0

// Command kubectl-satchel_migrate is the kubectl plugin satchel-migrate: it migrates to Satchel what other tools installed.
package main

import (
	"os"

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs may name any of the providers that kubectl knows

	"github.com/satchel-dev/satchel/internal/cli/program"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/migrate/internal/plugin"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	child.Main(jobs.Handlers())
	os.Exit(program.Main(plugin.Run, version))
}
