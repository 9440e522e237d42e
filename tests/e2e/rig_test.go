// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/e2erig"
)

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	if point := os.Getenv(killVariable); point != "" {
		os.Exit(runKilled(point))
	}
	var err error
	if uploadAddr, err = controlplane.FreeAddress(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := controlplane.RunMain(m, controlplane.Options{EtcdProxy: throughLine, KwokConfig: forwardUploads(uploadAddr)})
	if shared.rig.Rig != nil {
		shared.rig.Close()
	}
	os.Exit(code)
}

// uploadAddr is where the source controller takes uploads in.
var uploadAddr string

// forwardUploads lets the port for uploads of every fake Pod lead there.
func forwardUploads(addr string) string {
	_, port, _ := strings.Cut(addr, ":")
	return `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: uploads}
spec: {forwards: [{ports: [9091], target: {address: 127.0.0.1, port: ` + port + `}}]}
`
}

// etcdLine is between the API server and etcd.
var etcdLine *line

func throughLine(etcd string) (string, error) {
	var err error
	if etcdLine, err = newLine(etcd, nil); err != nil {
		return "", err
	}
	return etcdLine.addr(), nil
}

const (
	patience             = e2erig.Patience
	sourceController     = e2erig.SourceController
	deploymentController = e2erig.DeploymentController
)

// rig is the whole of Satchel on a control plane, with a proxy before the API server.
type rig struct {
	*e2erig.Rig

	proxy *proxy
}

var shared struct {
	once sync.Once
	rig  rig
	err  error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	shared.once.Do(func() { shared.err = shared.rig.start(cp) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.rig
}

func (r *rig) start(cp *controlplane.ControlPlane) (err error) {
	if r.proxy, err = newProxy(cp.RESTConfig()); err != nil {
		return err
	}
	r.Rig, err = e2erig.New(context.Background(), cp, e2erig.Options{ // the processes run as long as the test binary
		Cluster: r.proxy.cluster(), Uploads: uploadAddr, Ended: func() { r.proxy.deaths.Add(1) },
	})
	return err
}
