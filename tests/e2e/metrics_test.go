// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/satchel-dev/satchel/tests/controlplane"
	"github.com/satchel-dev/satchel/tests/installation"
)

// The dashboard and the alerts of config/monitoring use metrics that the controllers
// serve, with the labels by which they select.
func TestMetricsOfMonitoringAreServed(t *testing.T) {
	r := newRig(t)
	r.alone(t)
	flux := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(flux.Close)
	first, second := r.freeAddr(t), r.freeAddr(t)
	_, server := r.sources(t, "metrics-source", "--metrics-addr="+first, "--enable-leader-election", "--events-addr="+flux.URL)
	r.deployments(t, "metrics-deployment", []string{server}, "--metrics-addr="+second, "--enable-leader-election", "--events-addr="+flux.URL)
	namespace := r.Namespace(t)
	key := r.Deploy(t, namespace, "app", r.Push(t, "metrics:v1", configMaps("seen", 2)), nil)
	r.Ready(t, key)

	names, err := os.ReadFile(filepath.Join(installation.Root(), "config", "testdata", "metrics.txt"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`leader_election_master_status{name="bundle-source-controller"} 1`, `leader_election_master_status{name="bundle-deployment-controller"} 1`,
		`workqueue_depth{controller="bundlesource",name="bundlesource"`, `workqueue_depth{controller="bundledeployment",name="bundledeployment"`,
		`controller_runtime_active_workers{controller="bundledeployment"}`,
		`satchel_applied_objects_total{outcome="created"} 2`,
		`gotk_reconcile_duration_seconds_count{kind="BundleDeployment",name="app",namespace="` + namespace + `"}`,
	}
	for _, name := range strings.Fields(string(names)) {
		if name != "satchel_certificate_expiry_timestamp_seconds" { // only of bundles with webhooks
			want = append(want, "# TYPE "+name+" ")
		}
	}
	r.Eventually(t, t.Context(), "all metrics are served", func(ctx context.Context) (bool, string) {
		served := scrape(ctx, first) + scrape(ctx, second)
		for _, line := range want {
			if !strings.Contains(served, line) {
				return false, "not served: " + line
			}
		}
		return true, ""
	})
	r.Remove(t, key)
	r.Eventually(t, t.Context(), "no metrics of deleted objects", func(ctx context.Context) (bool, string) {
		served := scrape(ctx, first) + scrape(ctx, second)
		_, left, found := strings.Cut(served, `name="app",namespace="`+namespace+`"`)
		return !found && served != "", left[:min(len(left), 100)]
	})
}

func (r *rig) freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := controlplane.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// scrape reads metrics; "" while they are not served.
func scrape(ctx context.Context, addr string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/metrics", nil)
	if err != nil {
		return ""
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return ""
	}
	return string(text)
}
