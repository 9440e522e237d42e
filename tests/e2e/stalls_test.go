// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// F7: the API server is killed and started again while deployments are installed. They
// arrive, nothing is left over, the controllers go on, and do not fill their logs.
func TestF7APIServerRestarts(t *testing.T) {
	deployments, kills := 6, 2
	if full() {
		deployments, kills = 50, 20
	}
	r := newRig(t)
	r.CP.RequireControl(t)
	namespace := r.Namespace(t)
	processes, logs, began := r.Pids(), r.logSizes(t), time.Now()
	keys := make([]client.ObjectKey, 0, deployments)
	created := make(chan error, 1)
	for i := range deployments {
		keys = append(keys, client.ObjectKey{Namespace: namespace, Name: fmt.Sprintf("app-%02d", i)})
		r.Push(t, fmt.Sprintf("f7-%02d:v1", i), prefixed(i))
	}
	go func() { created <- r.createAll(context.WithoutCancel(t.Context()), keys) }()
	for range kills {
		if err := r.CP.APIServer().Kill(); err != nil {
			t.Fatal(err)
		}
		if err := r.CP.APIServer().Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		r.progress(t, namespace)
	}
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	for i, key := range keys {
		r.Ready(t, key)
		if found := r.named(t, namespace, fmt.Sprintf("f7-%02d-", i)); len(found) != 4 {
			t.Errorf("%s has %v, want four objects", key.Name, found)
		}
	}
	t.Logf("%d deployments are Ready after %d restarts of the API server, in %.0f s", deployments, kills, time.Since(began).Seconds())
	for name, pid := range r.Pids() {
		if processes[name] != pid {
			t.Errorf("%s was restarted", name)
		}
	}
	r.checkLogs(t, logs, time.Since(began))
	r.waitForNoWrites(t, namespace)
	r.quiet(t, namespace, 6*time.Second)
	for _, key := range keys {
		r.Remove(t, key)
	}
}

// F8: etcd is stopped for some time. Everything that was asked for meanwhile arrives, and
// nothing is written twice.
func TestF8EtcdStalls(t *testing.T) {
	pauses := []time.Duration{5 * time.Second}
	if full() {
		pauses = []time.Duration{5 * time.Second, 20 * time.Second, 40 * time.Second}
	}
	r := newRig(t)
	r.CP.RequireControl(t)
	for _, pause := range pauses {
		t.Run(pause.String(), func(t *testing.T) {
			namespace := r.Namespace(t)
			image := r.Push(t, "f8-"+namespace+":v1", configMaps("stalled", 20))
			processes := r.Pids()
			key := r.Deploy(t, namespace, "app", image, func(d *v1alpha1.BundleDeployment) { d.Spec.Interval.Duration = 2 * time.Second })
			if err := r.CP.Etcd().Pause(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-time.After(pause):
			case <-t.Context().Done():
			}
			if err := r.CP.Etcd().Resume(); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			r.Ready(t, key)
			t.Logf("Ready %.1f s after etcd answers again", time.Since(began).Seconds())
			if found := r.named(t, namespace, "stalled"); len(found) != 20 {
				t.Errorf("%d objects, want 20", len(found))
			}
			for name, pid := range r.Pids() {
				if processes[name] != pid {
					t.Errorf("%s was restarted", name)
				}
			}
			r.waitForNoWrites(t, namespace)
			r.quiet(t, namespace, 6*time.Second)
			r.Remove(t, key)
		})
	}
}

// F8: every answer of etcd is 300 ms late for some time. Two replicas of the deployment
// controller go on installing and upgrading; the lease may change hands, and a replica
// without it writes nothing.
func TestF8EtcdIsSlow(t *testing.T) {
	took := 15 * time.Second
	if full() {
		took = 5 * time.Minute
	}
	r := newRig(t)
	r.CP.RequireControl(t)
	r.Kill(deploymentController)
	t.Cleanup(func() {
		if err := r.Start(deploymentController); err != nil {
			t.Error(err)
		}
	})
	namespace := r.Namespace(t)
	replicas := r.replicas(t, leaseOf(), namespace)
	places := []string{replicas[0].from, replicas[1].from}
	leader := r.leader(t, "")
	var mu sync.Mutex
	var writers []string
	r.proxy.onRequest(func(request *http.Request) {
		if host, _, err := net.SplitHostPort(request.RemoteAddr); err == nil && slices.Contains(places, host) && isControllerWrite(request, namespace) {
			mu.Lock()
			defer mu.Unlock()
			if len(writers) == 0 || writers[len(writers)-1] != host {
				writers = append(writers, host)
			}
		}
	})
	defer r.proxy.onRequest(nil)

	etcdLine.slow(300 * time.Millisecond)
	defer etcdLine.slow(0)
	upgrades, began := 0, time.Now()
	key := r.Deploy(t, namespace, "app", r.Push(t, "slow:v1", configMaps("slow-0", 20)), func(d *v1alpha1.BundleDeployment) {
		d.Spec.Interval.Duration = 2 * time.Second
	})
	healthy := r.Ready(t, key).Status.Healthy.Revision
	for time.Since(began) < took {
		upgrades++
		r.Push(t, "slow:v1", configMaps(fmt.Sprintf("slow-%d", upgrades), 20))
		before := healthy
		healthy = r.Until(t, key, fmt.Sprintf("upgrade %d", upgrades), func(d *v1alpha1.BundleDeployment) bool {
			return isReady(d) && d.Status.Healthy.Revision != before
		}).Status.Healthy.Revision
	}
	etcdLine.slow(0)
	if found, of := r.named(t, namespace, "slow"), r.named(t, namespace, fmt.Sprintf("slow-%d-", upgrades)); len(found) != 20 || len(of) != 20 {
		t.Errorf("%d objects, of which %d are of the last upgrade, want 20: %v", len(found), len(of), found)
	}
	r.waitForNoWrites(t, namespace)
	r.quiet(t, namespace, 6*time.Second)
	changes := 0
	if now := r.leader(t, ""); now != leader {
		changes++
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d upgrades of 20 objects in %.0f s; written from %v in turn", upgrades, time.Since(began).Seconds(), writers)
	if upgrades == 0 || len(writers) == 0 || len(writers) > 1+changes {
		t.Errorf("written from %v in turn, and the lease changed hands %d times", writers, changes)
	}
	r.proxy.onRequest(nil)
	r.Remove(t, key)
	for _, replica := range replicas {
		replica.leave()
	}
}

// prefixed is a bundle of four ConfigMaps.
func prefixed(i int) fstest.MapFS { return configMaps(fmt.Sprintf("f7-%02d-x", i), 4) }

// createAll creates deployments, each as soon as the API server takes it.
func (r *rig) createAll(ctx context.Context, keys []client.ObjectKey) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for i, key := range keys {
		d := &v1alpha1.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		d.Spec.ServiceAccountName = "installer"
		d.Spec.Source = &v1alpha1.BundleSourceSpec{Sources: []v1alpha1.Source{{Image: &v1alpha1.ImageSource{
			Reference: fmt.Sprintf("%s/f7-%02d:v1", r.Registry.Host(), i), Insecure: true,
		}}}}
		for client.IgnoreAlreadyExists(r.Admin.Create(ctx, d)) != nil {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
			d.ResourceVersion = ""
		}
	}
	return nil
}

// progress waits until a deployment more is Ready, or all are.
func (r *rig) progress(t *testing.T, namespace string) {
	t.Helper()
	count := func(ctx context.Context) (ready, all int) {
		var list v1alpha1.BundleDeploymentList
		if err := r.Admin.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return 0, -1
		}
		for i := range list.Items {
			if isReady(&list.Items[i]) {
				ready++
			}
		}
		return ready, len(list.Items)
	}
	before := -1
	r.Eventually(t, t.Context(), "the controllers go on", func(ctx context.Context) (bool, string) {
		ready, all := count(ctx)
		if before < 0 && all >= 0 {
			before = ready
		}
		return all >= 0 && (ready > before || ready == all && all > 0), fmt.Sprintf("%d of %d", ready, all)
	})
}

func (r *rig) logSizes(t *testing.T) map[string]int {
	t.Helper()
	sizes := map[string]int{}
	for _, name := range []string{sourceController, deploymentController} {
		text, err := os.ReadFile(r.File(name + ".log"))
		if err != nil {
			t.Fatal(err)
		}
		sizes[name] = len(text)
	}
	return sizes
}

// checkLogs wants at most a line a second about errors in the log of each controller.
func (r *rig) checkLogs(t *testing.T, since map[string]int, took time.Duration) {
	t.Helper()
	for name, size := range since {
		text, err := os.ReadFile(r.File(name + ".log"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(text[size:], []byte(`"level":"error"`)) + bytes.Count(text[size:], []byte("\nE"))
		t.Logf("%s: %d lines about errors in %.0f s", name, lines, took.Seconds())
		if float64(lines) > 6*took.Seconds() {
			t.Errorf("%s wrote %d lines about errors in %s, want one a second", name, lines, took)
		}
	}
}
