// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"
)

// commitSample puts the sample greeter on the branch main, so that the repository can be cloned.
func (d *demo) commitSample(context.Context) error {
	files := fstest.MapFS{}
	if err := copyTree(files, os.DirFS(d.repo), "tests/bundles/"+greeterName, greeterName); err != nil {
		return err
	}
	_, err := d.git.Commit("Add the bundle "+greeterName, files)
	return err
}

// describeServers prints what a shell needs to use the servers.
func (d *demo) describeServers() {
	d.chapterf("Everything runs; Ctrl-C ends it and leaves nothing behind")
	d.text(fmt.Sprintf(`In another terminal:
export KUBECONFIG=%s
export PATH=%s:$PATH
export SATCHEL_REGISTRY=%s     # plain HTTP: set insecure: true in sources
export SATCHEL_GIT=%s     # takes pushes without a login

kubectl apply -k config/samples/permissions && kubectl apply -k config/samples/hello
satchel status hello -n samples
git clone $SATCHEL_GIT /tmp/fleet                     # has the folder %s
satchel bundle push tests/bundles/%s $SATCHEL_REGISTRY/%s:v1

Logs of the controllers: %s`,
		d.cluster.kubeconfig, strings.Trim(d.cluster.binDir+":"+filepath.Join(d.repo, "bin"), ":"), d.registry.Host(), d.git.URL(),
		greeterName, greeterName, greeterName, filepath.Join(d.dir, "*.log")))
}
