// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/kubernetes"
)

// KubeconfigEnv names the environment variable with a kubeconfig of an existing cluster that [Shared] is
// to use. Tests that control components or read the audit log are skipped there, see
// [ControlPlane.RequireControl].
const KubeconfigEnv = "SATCHEL_TEST_KUBECONFIG"

// shared is the control plane of a test binary; a test's main function has no other way to hand it on.
var shared struct {
	mu      sync.Mutex
	options Options
	cp      *ControlPlane
	err     error
}

// errSharedRuns says that Start could wait for ever: the shared control plane keeps its place to the end.
var errSharedRuns = errors.New("the shared control plane of this test binary runs: call StopShared first, or give " +
	"RunMain an Options.Reserve and start this one with Options.Beside")

// RunMain runs the tests of a package and then stops the shared control plane, if one of them started it.
// It returns the exit code for os.Exit. Options, of which there may be one, are those of the shared
// control plane; its progress goes to standard error unless they say otherwise.
func RunMain(m *testing.M, options ...Options) int {
	if len(options) > 0 {
		shared.options = options[0]
	}
	code := m.Run()
	if err := stopShared(); err != nil {
		fmt.Fprintf(os.Stderr, "stopping the shared control plane: %v\n", err)
		code = max(code, 1)
	}
	return code
}

// Shared returns the control plane that the tests of this binary share, and starts it if it does not run.
// The package's TestMain must call [RunMain].
func Shared(t testing.TB) *ControlPlane {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.cp == nil && shared.err == nil {
		shared.cp, shared.err = startShared()
	}
	if shared.err != nil {
		t.Fatalf("starting the shared control plane: %v", shared.err)
	}
	return shared.cp
}

// StopShared stops the shared control plane, if it runs, for a test that starts its own: the machine has
// few places. The next call of [Shared] starts another, empty one. No test that uses it may run meanwhile.
func StopShared(t testing.TB) {
	t.Helper()
	if err := stopShared(); err != nil {
		t.Fatalf("stopping the shared control plane: %v", err)
	}
}

func stopShared() error {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	cp := shared.cp
	shared.cp = nil
	if cp == nil {
		return nil
	}
	return cp.Stop()
}

// sharedRuns reports whether the shared control plane holds a place.
func sharedRuns() bool {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	return shared.cp != nil && !shared.cp.External()
}

func startShared() (*ControlPlane, error) {
	if path := os.Getenv(KubeconfigEnv); path != "" {
		return existing(path)
	}
	opts := shared.options
	if opts.Progress == nil {
		opts.Progress = os.Stderr
	}
	return start(context.Background(), opts)
}

// existing returns the cluster of a kubeconfig.
func existing(path string) (*ControlPlane, error) {
	config, err := loadRESTConfig(path)
	if err != nil {
		return nil, err
	}
	component := func(name string) *Component { return &Component{name: name} }
	return &ControlPlane{
		kubeconfig: path, rest: config,
		etcd: component("etcd"), apiServer: component("kube-apiserver"), kwok: component("kwok"),
		controllerManager: component("kube-controller-manager"), scheduler: component("kube-scheduler"),
	}, nil
}

// RequireControl skips the test on an existing cluster, where components and audit log are out of reach.
func (cp *ControlPlane) RequireControl(t testing.TB) {
	t.Helper()
	if cp.External() {
		t.Skipf("needs a control plane of its own; unset %s", KubeconfigEnv)
	}
}

// NewNamespace creates a namespace with a unique name that tells the test, ready for Pods. The end of the
// test deletes it, without waiting until it is gone.
func NewNamespace(t testing.TB, cp *ControlPlane) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.rest)
	if err != nil {
		t.Fatalf("creating a client: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	name := namespaceName(t.Name())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	t.Cleanup(func() { deleteNamespace(t, client, name) })
	if err := waitFor(ctx, serviceAccountExists(client, name)); err != nil {
		t.Fatalf("waiting for the default service account of the namespace %s: %v", name, err)
	}
	return name
}

func deleteNamespace(t testing.TB, client kubernetes.Interface, name string) {
	t.Helper()
	// The test's own context has ended by now.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Logf("deleting the namespace %s: %v", name, err)
	}
}

// notInNames matches what a namespace's name cannot contain.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceName makes a name of at most 46 characters, which leaves room for suffixes.
func namespaceName(test string) string {
	name := notInNames.ReplaceAllString(strings.ToLower(test), "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	return strings.TrimPrefix(name+"-"+rand.String(5), "-")
}
