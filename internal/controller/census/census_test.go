// SPDX-License-Identifier: Apache-2.0

package census_test

import (
	"context"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/controller/census"
)

// reader is a cache with fixed content.
type reader struct {
	client.Reader
	deployments []v1alpha1.BundleDeployment
	sources     []v1alpha1.BundleSource
}

func (r reader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *v1alpha1.BundleDeploymentList:
		l.Items = r.deployments
	case *v1alpha1.BundleSourceList:
		l.Items = r.sources
	}
	return nil
}

func ready(status metav1.ConditionStatus, reason string) []metav1.Condition {
	return []metav1.Condition{{Type: "Ready", Status: status, Reason: reason}}
}

func deployment(suspend bool, applied, unhealthy int32, conditions []metav1.Condition) v1alpha1.BundleDeployment {
	var d v1alpha1.BundleDeployment
	d.Spec.Suspend = suspend
	d.Status.Conditions = conditions
	d.Status.Objects = &v1alpha1.ObjectCounts{Applied: applied, Unhealthy: unhealthy}
	return d
}

var everything = client.MatchingLabelsSelector{Selector: labels.Everything()}

func TestDeployments(t *testing.T) {
	leads := make(chan struct{})
	named := deployment(false, 0, 0, nil)
	named.Namespace, named.Name = "shop", "web"
	named.Status.Applied.Revision, named.Status.Applied.Version, named.Status.Applied.OriginRevision = "main@sha256:1", "1.2.3", "main@sha1:2"
	c := census.Census{Shard: everything, Leads: leads, Reader: reader{deployments: []v1alpha1.BundleDeployment{
		named,
		deployment(false, 3, 0, ready(metav1.ConditionTrue, "Succeeded")),
		deployment(true, 4, 0, ready(metav1.ConditionTrue, "Succeeded")),
		deployment(false, 5, 2, ready(metav1.ConditionFalse, "Unhealthy")),
		{},
	}}}
	if n := testutil.CollectAndCount(c); n != 0 {
		t.Errorf("%d figures of a process that does not lead: they would count twice", n)
	}
	close(leads)
	want := `
# HELP satchel_bundledeployment_info The version and the origin revision that a deployment applied last; always 1.
# TYPE satchel_bundledeployment_info gauge
satchel_bundledeployment_info{name="web",namespace="shop",origin_revision="main@sha1:2",version="1.2.3"} 1
# HELP satchel_conditions How many objects have a condition, by its status and reason.
# TYPE satchel_conditions gauge
satchel_conditions{kind="BundleDeployment",reason="Succeeded",status="True",type="Ready"} 2
satchel_conditions{kind="BundleDeployment",reason="Unhealthy",status="False",type="Ready"} 1
# HELP satchel_objects How many objects the deployments have applied, and how many of them are not healthy.
# TYPE satchel_objects gauge
satchel_objects{state="applied"} 12
satchel_objects{state="unhealthy"} 2
# HELP satchel_suspended How many objects are suspended.
# TYPE satchel_suspended gauge
satchel_suspended{kind="BundleDeployment"} 1
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestSources(t *testing.T) {
	leads := make(chan struct{})
	close(leads)
	source := v1alpha1.BundleSource{}
	source.Status.Conditions = ready(metav1.ConditionUnknown, "Progressing")
	published := v1alpha1.BundleSource{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	published.Status.OriginRevision = "main@sha1:2, v1@sha256:3"
	c := census.Census{Shard: everything, Leads: leads, Sources: true, Reader: reader{sources: []v1alpha1.BundleSource{source, published}}}
	want := `
# HELP satchel_bundlesource_info The origin revision that a source publishes; always 1.
# TYPE satchel_bundlesource_info gauge
satchel_bundlesource_info{name="web",namespace="shop",origin_revision="main@sha1:2, v1@sha256:3"} 1
# HELP satchel_conditions How many objects have a condition, by its status and reason.
# TYPE satchel_conditions gauge
satchel_conditions{kind="BundleSource",reason="Progressing",status="Unknown",type="Ready"} 1
# HELP satchel_suspended How many objects are suspended.
# TYPE satchel_suspended gauge
satchel_suspended{kind="BundleCatalog"} 0
satchel_suspended{kind="BundleSource"} 0
`
	if err := testutil.CollectAndCompare(c, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
