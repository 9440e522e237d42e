// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/internal/artifact/upload"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// uploads is where the source controller takes in what satchel run brings.
var uploads string

// TestMain has port forwards to the Pods, which do not really run, end at the controller that runs beside the cluster.
func TestMain(m *testing.M) {
	var err error
	if uploads, err = controlplane.FreeAddress(); err != nil {
		panic(err) //nolint:forbidigo // there is no test yet that could fail
	}
	_, port, _ := net.SplitHostPort(uploads)
	os.Exit(controlplane.RunMain(m, controlplane.Options{KwokConfig: fmt.Sprintf(`
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterPortForward
metadata: {name: uploads}
spec: {forwards: [{ports: [%d], target: {address: 127.0.0.1, port: %s}}]}
`, upload.Port, port)}))
}

// rig is a cluster with Satchel on it, the servers of the examples, and the built programs.
type rig struct {
	*servers
	cp    *controlplane.ControlPlane
	admin client.Client
	dir   string // with the programs
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	if err := installation.InstallFluxKinds(t.Context(), cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	admin, err := installation.Client(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	r := &rig{cp: cp, admin: admin, dir: dir, servers: startServers(t, dir)}
	for _, module := range []string{".", "migrate"} {
		build := exec.CommandContext(t.Context(), "go", "build", "-C", module, "-ldflags=-X main.version=v0.1.0", "-o", r.dir+"/", "./cmd/...")
		build.Dir = installation.Root()
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building: %v\n%s", err, output)
		}
	}
	if err := writeKubeconfig(r.file("kubeconfig"), cp.RESTConfig(), "samples"); err != nil {
		t.Fatal(err)
	}
	return r
}

// install puts Satchel on the cluster as its administrator does, and starts the controllers beside it.
func (r *rig) install(t *testing.T) {
	t.Helper()
	if _, err := r.visitor(t).shell(t.Context(), "satchel install --registry registry.example.org/satchel", "0"); err != nil {
		t.Fatal(err)
	}
	r.startControllers(t)
}

// file is a path in the rig's folder.
func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) startControllers(t *testing.T) {
	t.Helper()
	storage, dir := freeAddress(t), t.TempDir()
	common := []string{"--metrics-addr=0", "--health-addr=0", "--namespace=" + installation.Namespace}
	r.start(t, "bundle-source-controller", append(slices.Clone(common), "--storage-path="+filepath.Join(dir, "data"),
		"--storage-addr="+storage, "--storage-adv-addr="+storage, "--upload-addr="+uploads, "--egress-allow=127.0.0.0/8"))
	r.start(t, "bundle-deployment-controller", append(slices.Clone(common),
		"--artifact-servers=http://"+storage, "--cache-path="+filepath.Join(dir, "cache"), "--egress-allow=127.0.0.0/8", "--allow-kubeconfig-to-own-cluster"))
	// A Pod is ready once it listens; the Pods of this cluster, which run nothing, always are.
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", uploads)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the source controller does not listen on %s: %v", uploads, err)
	}
}

// freeAddress is an unused address on loopback.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// start runs a controller as its service account until the test is over.
func (r *rig) start(t *testing.T, name string, arguments []string) {
	t.Helper()
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), installation.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeKubeconfig(r.file(name+".kubeconfig"), config, ""); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(r.file(name + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(context.WithoutCancel(t.Context()), r.file(name), append(arguments, "--kubeconfig="+r.file(name+".kubeconfig"))...)
	process.Env = append(os.Environ(), "SSL_CERT_FILE="+r.authority)
	process.Stdout, process.Stderr = log, log
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM)
		var ended *exec.ExitError
		if err := process.Wait(); err != nil && !errors.As(err, &ended) {
			t.Error(err)
		}
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
}

// writeKubeconfig writes how to reach a cluster, by the names that the pages call contexts, with a namespace to work in.
func writeKubeconfig(file string, config *rest.Config, namespace string) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	for _, name := range []string{"here", "prod-eu"} {
		c.Contexts[name] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}
	}
	c.CurrentContext = "here"
	return clientcmd.WriteToFile(*c, file)
}
