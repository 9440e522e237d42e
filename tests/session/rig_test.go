// SPDX-License-Identifier: Apache-2.0

//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
	"github.com/satchel-dev/satchel/tests/upstream"
)

func TestMain(m *testing.M) { os.Exit(controlplane.RunMain(m)) }

// rig is a cluster with Satchel on it, a Git server, and the built programs.
type rig struct {
	cp    *controlplane.ControlPlane
	admin client.Client
	git   *upstream.Git
	dir   string // with the programs
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	ctx := t.Context()
	if err := installation.Install(ctx, cp.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	admin, err := installation.Client(cp.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	git, err := upstream.NewGit()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := git.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &rig{cp: cp, admin: admin, git: git, dir: t.TempDir()}
	build := exec.CommandContext(ctx, "go", "build", "-o", r.dir+"/", "./cmd/...")
	build.Dir = installation.Root()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, output)
	}
	r.startControllers(t)
	return r
}

func (r *rig) startControllers(t *testing.T) {
	t.Helper()
	storage, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	common := []string{"--metrics-addr=0", "--health-addr=0"}
	r.start(t, "bundle-source-controller", append(slices.Clone(common), "--storage-path="+filepath.Join(r.dir, "data"),
		"--storage-addr="+storage, "--storage-adv-addr="+storage, "--upload-addr=", "--egress-allow=127.0.0.0/8", "--insecure-hosts=127.0.0.1"))
	r.start(t, "bundle-deployment-controller", append(slices.Clone(common),
		"--artifact-servers=http://"+storage, "--cache-path="+filepath.Join(r.dir, "cache")))
}

// start runs a controller as its service account until the test is over.
func (r *rig) start(t *testing.T, name string, arguments []string) {
	t.Helper()
	config, err := installation.AccountConfig(t.Context(), r.cp.RESTConfig(), installation.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(r.dir, name+".kubeconfig")
	if err := writeKubeconfig(kubeconfig, config, ""); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(r.dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(context.WithoutCancel(t.Context()), filepath.Join(r.dir, name), append(arguments, "--kubeconfig="+kubeconfig)...)
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
			t.Logf("%s:\n%s", name, text[max(0, len(text)-4000):])
		}
	})
}

// writeKubeconfig writes how to reach a cluster, with a namespace to work in.
func writeKubeconfig(file string, config *rest.Config, namespace string) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	c.AuthInfos["u"] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData,
	}
	c.Contexts["x"], c.CurrentContext = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: namespace}, "x"
	if err := clientcmd.WriteToFile(*c, file); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}
