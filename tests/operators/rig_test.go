// SPDX-License-Identifier: Apache-2.0

package operators

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/worker/child"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// patience bounds each wait; it is many times what one needs.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	child.Main(jobs.Handlers())
	ctrl.SetLogger(logr.Discard()) // what the controller says is in events and statuses
	code := controlplane.RunMain(m)
	_ = os.RemoveAll(shared.dir)
	os.Exit(code)
}

// rig is a control plane with Satchel on it.
type rig struct {
	*installation.Deployments
	cp        *controlplane.ControlPlane
	admin     client.Client
	discovery discovery.DiscoveryInterface
	provided  []*unstructured.Unstructured // CRDs of others that the cluster got for the bundles
}

var shared struct {
	once sync.Once
	rig  rig
	dir  string
	err  error
}

func newRig(t *testing.T) *rig {
	t.Helper()
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	shared.once.Do(func() { shared.err = shared.rig.start(cp) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return &shared.rig
}

func (r *rig) start(cp *controlplane.ControlPlane) (err error) {
	ctx := context.Background() // the controller runs as long as the test binary
	unlimited := rest.CopyConfig(cp.RESTConfig())
	unlimited.QPS, unlimited.Burst = -1, -1
	r.cp = cp
	if err := installation.Install(ctx, unlimited); err != nil {
		return err
	}
	if r.admin, err = installation.Client(unlimited); err != nil {
		return err
	}
	if err := apiextensionsv1.AddToScheme(r.admin.Scheme()); err != nil {
		return err
	}
	if r.discovery, err = discovery.NewDiscoveryClientForConfig(unlimited); err != nil {
		return err
	}
	if shared.dir, err = os.MkdirTemp("", "satchel-operators-*"); err != nil {
		return err
	}
	r.Deployments, err = installation.StartDeployments(ctx, unlimited, shared.dir, 8)
	return err
}

// eventually polls until something holds.
func (r *rig) eventually(t *testing.T, ctx context.Context, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	if seen, holds := poll(ctx, check); !holds {
		t.Fatalf("waited in vain: %s; last seen:\n%s", what, seen)
	}
}

// poll checks until a condition holds or patience ends; it returns what was seen last.
func poll(ctx context.Context, check func(context.Context) (bool, string)) (seen string, holds bool) {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		done, now := check(ctx)
		if ctx.Err() == nil {
			seen = now
		}
		return done, nil
	})
	return seen, err == nil
}

// describe is what a status says, for failures.
func describe(d *v1alpha1.BundleDeployment) string {
	var text strings.Builder
	fmt.Fprintf(&text, "generation %d, observed %d, attempted %q, applied %q, healthy %q\n", d.Generation, d.Status.ObservedGeneration,
		d.Status.Attempted.Revision, d.Status.Applied.Revision, d.Status.Healthy.Revision)
	for _, c := range d.Status.Conditions {
		fmt.Fprintf(&text, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return text.String()
}
