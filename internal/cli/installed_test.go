// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
)

// anyClient writes objects of any kind.
func (c testCluster) anyClient() client.Client {
	c.t.Helper()
	anything, err := client.New(c.cp.RESTConfig(), client.Options{})
	if err != nil {
		c.t.Fatal(err)
	}
	return anything
}

// object creates an object in the namespace from YAML; with a deployment's name it has its labels.
func (c testCluster) object(deployment, text string) *unstructured.Unstructured {
	c.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		c.t.Fatal(err)
	}
	o.SetNamespace(c.namespace)
	if deployment != "" {
		o.SetLabels(inventory.Owner{Namespace: c.namespace, Name: deployment}.Labels())
	}
	if err := c.anyClient().Create(c.t.Context(), o); err != nil {
		c.t.Fatal(err)
	}
	return o
}

// lists adds objects to a deployment's inventory.
func lists(t *testing.T, objects ...*unstructured.Unstructured) func(*v1alpha1.BundleDeployment) {
	t.Helper()
	entries := make([]inventory.Entry, 0, len(objects))
	for _, o := range objects {
		entries = append(entries, inventory.Entry{ID: inventory.IDOf(o), Version: o.GroupVersionKind().Version})
	}
	encoded, err := inventory.New("cluster", entries...).Encode()
	if err != nil {
		t.Fatal(err)
	}
	return func(d *v1alpha1.BundleDeployment) { d.Status.Inventory = encoded }
}

// missing is an object that does not exist.
func (c testCluster) missing(apiVersion, kind, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(c.namespace)
	o.SetName(name)
	return o
}

// web is a Deployment with so many Pods; kwok runs them.
func web(name string, annotations string) string {
	return `
apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  replicas: 1
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}, annotations: {` + annotations + `}}
    spec: {containers: [{name: main, image: example.org/web:v1}, {name: side, image: example.org/side:v1}]}`
}

// syncBuffer may be read while a command writes.
type syncBuffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *syncBuffer) Write(data []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(data)
}

func (b *syncBuffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// following is a command that runs until it is interrupted.
type following struct {
	t        *testing.T
	out, err *syncBuffer
	cancel   context.CancelFunc
	code     chan int
}

// follow starts a command that runs until Ctrl-C.
func (c testCluster) follow(args ...string) following {
	c.t.Helper()
	ctx, cancel := context.WithCancel(c.t.Context())
	f := following{t: c.t, out: &syncBuffer{}, err: &syncBuffer{}, cancel: cancel, code: make(chan int, 1)}
	go func() {
		f.code <- Run(ctx, kit.Program{Path: "satchel", Now: time.Now,
			Streams: genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: f.out, ErrOut: f.err}},
			append([]string{"--kubeconfig", c.cp.KubeconfigPath(), "-n", c.namespace}, args...))
	}()
	c.t.Cleanup(cancel)
	return f
}

// until waits for a string in the output.
func (f following) until(text string) {
	f.t.Helper()
	deadline := time.After(time.Minute)
	for !strings.Contains(f.out.String(), text) {
		select {
		case <-deadline:
			f.t.Fatalf("%q is not written:\n%s\n%s", text, f.out, f.err)
		case code := <-f.code:
			f.t.Fatalf("it ended with %d before %q was written:\n%s\n%s", code, text, f.out, f.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// interrupt presses Ctrl-C and checks that the command ends.
func (f following) interrupt() {
	f.t.Helper()
	f.cancel()
	select {
	case code := <-f.code:
		if code != kit.ExitInterrupted {
			f.t.Errorf("exit %d after Ctrl-C: %s", code, f.err)
		}
	case <-time.After(time.Minute):
		f.t.Error("Ctrl-C does not end it")
	}
}

func objectKey(o metav1.ObjectMeta) client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
}

// scale sets the replicas of a Deployment.
func (c testCluster) scale(name string, replicas int) {
	c.t.Helper()
	o := c.missing("apps/v1", "Deployment", name)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	if err := c.anyClient().Patch(c.t.Context(), o, patch); err != nil {
		c.t.Fatal(err)
	}
}

// untilMore waits until the output contains a string once more than before.
func (f following) untilMore(text, before string) {
	f.t.Helper()
	deadline := time.After(time.Minute)
	for strings.Count(f.out.String(), text) <= strings.Count(before, text) {
		select {
		case <-deadline:
			f.t.Fatalf("%q is not written again:\n%s\n%s", text, f.out, f.err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}
