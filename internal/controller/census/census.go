// SPDX-License-Identifier: Apache-2.0

// Package census counts the objects of a controller by state when its metrics are
// collected, and shows the revision of each. Nothing is updated in between. Tenants
// control no label value, except of the metrics that show a revision: these are one
// series for each object.
package census

import (
	"context"

	"github.com/fluxcd/pkg/runtime/conditions"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

var (
	withCondition = prometheus.NewDesc("satchel_conditions",
		"How many objects have a condition, by its status and reason.", []string{"kind", "type", "status", "reason"}, nil)
	suspended = prometheus.NewDesc("satchel_suspended",
		"How many objects are suspended.", []string{"kind"}, nil)
	bundled = prometheus.NewDesc("satchel_objects",
		"How many objects the deployments have applied, and how many of them are not healthy.", []string{"state"}, nil)
	deploymentInfo = prometheus.NewDesc("satchel_bundledeployment_info",
		"The version and the origin revision that a deployment applied last; always 1.", []string{"namespace", "name", "version", "origin_revision"}, nil)
	sourceInfo = prometheus.NewDesc("satchel_bundlesource_info",
		"The origin revision that a source publishes; always 1.", []string{"namespace", "name", "origin_revision"}, nil)
)

// Census collects the metrics of one kind.
type Census struct {
	// Reader reads the objects, from a cache.
	Reader client.Reader
	// Shard restricts the list to the objects that this process reconciles.
	Shard client.ListOption
	// Leads is closed when this process is the leader; others count nothing.
	Leads <-chan struct{}
	// Sources counts BundleSources and BundleCatalogs instead of BundleDeployments.
	Sources bool
}

// Describe implements prometheus.Collector.
func (c Census) Describe(to chan<- *prometheus.Desc) {
	to <- withCondition
	to <- suspended
	if c.Sources {
		to <- sourceInfo
		return
	}
	to <- bundled
	to <- deploymentInfo
}

// Collect implements prometheus.Collector.
func (c Census) Collect(to chan<- prometheus.Metric) {
	select {
	case <-c.Leads:
	default:
		return
	}
	if c.Sources {
		c.collect(to, v1alpha1.BundleSourceKind, c.sources)
		c.collect(to, v1alpha1.BundleCatalogKind, c.catalogs)
		return
	}
	c.collect(to, v1alpha1.BundleDeploymentKind, c.deployments)
}

// collect counts the objects of one kind.
func (c Census) collect(to chan<- prometheus.Metric, kind string, list func(context.Context, *tally) error) {
	count := &tally{conditions: map[condition]int{}}
	if err := list(context.Background(), count); err != nil {
		ctrl.Log.Info("cannot count objects for the metrics", "kind", kind, "error", err.Error())
		return
	}
	for key, n := range count.conditions {
		to <- gauge(withCondition, n, kind, key.kind, string(key.status), key.reason)
	}
	to <- gauge(suspended, count.suspended, kind)
	for _, info := range count.infos {
		to <- info
	}
	if !c.Sources {
		to <- gauge(bundled, count.applied, "applied")
		to <- gauge(bundled, count.unhealthy, "unhealthy")
	}
}

func gauge(desc *prometheus.Desc, n int, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(n), labels...)
}

func (c Census) deployments(ctx context.Context, count *tally) error {
	var list v1alpha1.BundleDeploymentList
	if err := c.Reader.List(ctx, &list, c.Shard, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		d := &list.Items[i]
		count.add(d, d.Spec.Suspend)
		if o := d.Status.Objects; o != nil {
			count.applied, count.unhealthy = count.applied+int(o.Applied), count.unhealthy+int(o.Unhealthy)
		}
		if d.Status.Applied.Revision != "" {
			count.infos = append(count.infos, gauge(deploymentInfo, 1, d.Namespace, d.Name, d.Status.Applied.Version, d.Status.Applied.OriginRevision))
		}
	}
	return nil
}

func (c Census) sources(ctx context.Context, count *tally) error {
	var list v1alpha1.BundleSourceList
	if err := c.Reader.List(ctx, &list, c.Shard, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		s := &list.Items[i]
		count.add(s, s.Spec.Suspend)
		if s.Status.OriginRevision != "" {
			count.infos = append(count.infos, gauge(sourceInfo, 1, s.Namespace, s.Name, s.Status.OriginRevision))
		}
	}
	return nil
}

func (c Census) catalogs(ctx context.Context, count *tally) error {
	var list v1alpha1.BundleCatalogList
	if err := c.Reader.List(ctx, &list, c.Shard, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range list.Items {
		count.add(&list.Items[i], list.Items[i].Spec.Suspend)
	}
	return nil
}

// condition is the key by which objects are counted.
type condition struct {
	kind   string
	status metav1.ConditionStatus
	reason string
}

type tally struct {
	conditions                    map[condition]int
	suspended, applied, unhealthy int
	infos                         []prometheus.Metric
}

func (t *tally) add(object conditions.Getter, suspended bool) {
	for _, c := range object.GetConditions() {
		t.conditions[condition{c.Type, c.Status, c.Reason}]++
	}
	if suspended {
		t.suspended++
	}
}
