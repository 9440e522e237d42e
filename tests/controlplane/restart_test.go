// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/satchel-dev/satchel/tests/controlplane"
)

func createConfigMap(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func requireConfigMap(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	if _, err := client.CoreV1().ConfigMaps(namespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestKilledComponentsKeepState(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	client := newClient(t, cp)
	namespace := controlplane.NewNamespace(t, cp)
	for _, component := range components(cp) {
		t.Run(component.Name(), func(t *testing.T) {
			createConfigMap(t, client, namespace, component.Name())
			if err := component.Kill(); err != nil {
				t.Fatal(err)
			}
			if component.Running() {
				t.Fatal("runs after Kill")
			}
			if err := component.Pause(); !errors.Is(err, controlplane.ErrNotRunning) {
				t.Fatalf("Pause returned %v", err)
			}
			if err := component.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			// The API server reconnects to etcd a moment after that is back.
			eventually(t, "state after a restart", func(ctx context.Context) error {
				_, err := client.CoreV1().ConfigMaps(namespace).Get(ctx, component.Name(), metav1.GetOptions{})
				return err
			})
		})
	}
}

func TestStartBesideSharedNeedsAReserve(t *testing.T) {
	controlplane.Shared(t).RequireControl(t)
	if cp, err := controlplane.Start(t.Context(), controlplane.Options{}); err == nil {
		t.Error("started, where it could have waited for ever", cp.Stop())
	}
}

func TestPause(t *testing.T) {
	cp := controlplane.Shared(t)
	cp.RequireControl(t)
	client := newClient(t, cp)
	if err := cp.APIServer().Pause(); err != nil {
		t.Fatal(err)
	}
	// The threads of a process stop one after the other, so that a request or two may still be answered.
	eventually(t, "paused API server", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		defer cancel()
		if _, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return errors.Join(errors.New("it answered"), err)
		}
		return nil
	})
	if err := cp.APIServer().Resume(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "resumed API server", func(ctx context.Context) error {
		_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	})
}

func TestResumeDirectory(t *testing.T) {
	controlplane.StopShared(t)
	var connections atomic.Int64
	opts := controlplane.Options{Dir: t.TempDir(), Nodes: 1, EtcdProxy: relay(t, &connections)}
	first, err := controlplane.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if connections.Load() == 0 {
		t.Error("the API server reached etcd without the proxy")
	}
	createConfigMap(t, newClient(t, first), metav1.NamespaceDefault, "kept")
	if _, err := controlplane.Start(t.Context(), controlplane.Options{Dir: opts.Dir, Beside: first}); err == nil {
		t.Error("started without a reserved place")
	}
	started := time.Now()
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopping gently took %s", time.Since(started).Round(time.Millisecond))

	second, err := controlplane.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := second.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if first.RESTConfig().Host != second.RESTConfig().Host {
		t.Errorf("address moved from %s to %s", first.RESTConfig().Host, second.RESTConfig().Host)
	}
	// Clients of the first run go on to work.
	requireConfigMap(t, newClient(t, first), metav1.NamespaceDefault, "kept")
}
