// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/health"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Check reports whether the servers are available: their workloads are healthy, and each has a Pod that can be called. A workload
// of no Pods is healthy, but serves nothing.
func Check(
	ctx context.Context, client *tenant.Client, rules health.Rules, servers []Server, fresh map[inventory.ID]*unstructured.Unstructured,
) (objects []plan.Object, report health.Report, err error) {
	var lacking []health.Object
	services := 0
	for _, server := range servers {
		lacking = append(lacking, server.Lacking...)
		services += len(server.Lacking)
		for _, object := range server.Workloads {
			object.Desired = nil
			if !slices.ContainsFunc(objects, func(o plan.Object) bool { return o.ID == object.ID }) {
				objects = append(objects, object)
			}
		}
	}
	rules.Everything = false
	if report, err = rules.Check(ctx, client, objects, fresh); err != nil {
		return nil, health.Report{}, err
	}
	if report.Healthy() {
		if lacking, err = withoutPods(ctx, client, objects, lacking); err != nil {
			return nil, health.Report{}, err
		}
	}
	report.Total += services
	report.Unhealthy = append(report.Unhealthy, lacking...)
	return objects, report, nil
}

// withoutPods adds the workloads of which no Pod is available.
func withoutPods(ctx context.Context, client *tenant.Client, objects []plan.Object, lacking []health.Object) ([]health.Object, error) {
	for _, object := range objects {
		live, err := client.Get(ctx, tenant.RefTo(object.ID, object.Resource))
		switch {
		case apierrors.IsForbidden(err):
			continue
		case apierrors.IsNotFound(err): // since its health was checked
			lacking = append(lacking, health.Object{ID: object.ID, State: health.Missing, Message: "it does not exist"})
			continue
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", object.ID, err)
		}
		if count, _, _ := unstructured.NestedInt64(live.Object, workloads[object.ID.Kind].ready...); count == 0 {
			lacking = append(lacking, health.Object{ID: object.ID, State: health.InProgress, Message: "none of its Pods is available"})
		}
	}
	return lacking, nil
}
