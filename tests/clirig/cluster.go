// SPDX-License-Identifier: Apache-2.0

package clirig

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// Cluster is a namespace of a control plane, in which the test plays the controllers.
type Cluster struct {
	T         *testing.T
	CP        *controlplane.ControlPlane
	Client    client.WithWatch
	Namespace string

	run Runner
}

// New is a fresh namespace of the shared control plane with Satchel's CRDs.
func New(t *testing.T, run Runner) Cluster {
	t.Helper()
	cp := controlplane.Shared(t)
	InstallCRDs(t, cp)
	return On(t, cp, run)
}

// On is a fresh namespace of a control plane.
func On(t *testing.T, cp *controlplane.ControlPlane, run Runner) Cluster {
	t.Helper()
	c, err := client.NewWithWatch(cp.RESTConfig(), client.Options{Scheme: kit.NewScheme(), Mapper: kit.StaticMapper()})
	if err != nil {
		t.Fatal(err)
	}
	return Cluster{T: t, CP: cp, Client: c, Namespace: controlplane.NewNamespace(t, cp), run: run}
}

// crds says which control plane has the CRDs.
var crds struct {
	sync.Mutex
	on *controlplane.ControlPlane
}

func crdOptions() envtest.CRDInstallOptions {
	config := filepath.Join(installation.Root(), "config")
	return envtest.CRDInstallOptions{Paths: []string{filepath.Join(config, "crd", "bases"), filepath.Join(config, "rollouts", "crd")}, ErrorIfPathMissing: true}
}

// InstallCRDs installs the CRDs, unless the control plane has them.
func InstallCRDs(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	crds.Lock()
	defer crds.Unlock()
	if crds.on == cp {
		return
	}
	if _, err := envtest.InstallCRDs(cp.RESTConfig(), crdOptions()); err != nil {
		t.Fatalf("installing the CRDs: %v", err)
	}
	crds.on = cp
}

// UninstallCRDs removes them. The tests of a package run one after the other.
func UninstallCRDs(t *testing.T, cp *controlplane.ControlPlane) {
	t.Helper()
	crds.Lock()
	defer crds.Unlock()
	crds.on = nil
	if err := envtest.UninstallCRDs(cp.RESTConfig(), crdOptions()); err != nil {
		t.Fatal(err)
	}
}

// arguments are those of a command line against the namespace.
func (c Cluster) arguments(args []string) []string {
	return append([]string{"--kubeconfig", c.CP.KubeconfigPath(), "-n", c.Namespace}, args...)
}

// Satchel runs a command line against the namespace.
func (c Cluster) Satchel(args ...string) Outcome {
	c.T.Helper()
	return c.run.Run(c.T, "/usr/local/bin/satchel", time.Now, c.arguments(args)...)
}

// Follow starts a command line against the namespace that runs until Ctrl-C.
func (c Cluster) Follow(args ...string) Following {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	f := Following{t: c.T, Out: &Buffer{}, Err: &Buffer{}, Cancel: cancel, Code: make(chan int, 1)}
	go func() {
		f.Code <- c.run(ctx, kit.Program{Path: "satchel", Now: time.Now,
			Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: f.Out, ErrOut: f.Err}}, c.arguments(args))
	}()
	c.T.Cleanup(cancel)
	return f
}

// Eventually repeats a command line until it says something, for up to a minute: an API that was just removed is still known for a moment.
func (c Cluster) Eventually(text string, args ...string) Outcome {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), time.Minute)
	defer cancel()
	for {
		got := c.Satchel(args...)
		if strings.Contains(got.Out+got.Err, text) {
			return got
		}
		select {
		case <-ctx.Done():
			c.T.Fatalf("%q is not said by %s; last seen: %s", text, strings.Join(args, " "), got)
			return got
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// Want checks the exit code and that the output contains the strings.
func (c Cluster) Want(got Outcome, code int, texts ...string) {
	c.T.Helper()
	if got.Code != code {
		c.T.Errorf("exit %d, want %d: %s", got.Code, code, got)
	}
	for _, text := range texts {
		if !strings.Contains(got.Out+got.Err, text) {
			c.T.Errorf("%q is missing in %s", text, got)
		}
	}
}

// Create stores an object and its status.
func (c Cluster) Create(o view.Object) {
	c.T.Helper()
	o.SetNamespace(c.Namespace)
	o.SetGeneration(0)
	o.SetCreationTimestamp(metav1.Time{})
	status, ok := o.DeepCopyObject().(view.Object)
	if !ok {
		c.T.Fatalf("a copy of %T is of another type", o)
	}
	if err := c.Client.Create(c.T.Context(), o); err != nil {
		c.T.Fatal(err)
	}
	c.T.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(c.T.Context()), o) }) // other tests list all namespaces
	status.SetResourceVersion(o.GetResourceVersion())
	status.SetUID(o.GetUID())
	switch status := status.(type) {
	case *v1alpha1.BundleDeployment:
		status.Status.ObservedGeneration = min(status.Status.ObservedGeneration, 1)
	case *v1alpha1.BundleSource:
		status.Status.ObservedGeneration = min(status.Status.ObservedGeneration, 1)
	case *v1alpha1.BundleCatalog:
		status.Status.ObservedGeneration = min(status.Status.ObservedGeneration, 1)
	}
	if err := c.Client.Status().Update(c.T.Context(), status); err != nil {
		c.T.Fatal(err)
	}
}

// AnyClient writes objects of any kind.
func (c Cluster) AnyClient() client.Client {
	c.T.Helper()
	anything, err := client.New(c.CP.RESTConfig(), client.Options{})
	if err != nil {
		c.T.Fatal(err)
	}
	return anything
}
