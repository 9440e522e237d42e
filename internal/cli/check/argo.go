// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// Names of Argo CD.
const (
	argoCheck           = "Argo CD"
	argoConfigMap       = "argocd-cm"
	argoTrackingMethod  = "application.resourceTrackingMethod"
	argoInstanceKey     = "application.instanceLabelKey"
	defaultArgoInstance = "app.kubernetes.io/instance"
)

// Bounds of the check.
const (
	mostApplications = 5000
	mostLabelled     = 1000
)

var (
	applicationKind    = schema.GroupKind{Group: "argoproj.io", Kind: "Application"}
	configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// argo warns of objects that Argo CD takes for those of an Application. Where it tracks objects by a label, an object that
// Satchel installed with the name of an Application as its value is shown there, and pruned, as it is not in its repository.
// Charts set that label to the name of their release. Nothing is said where there is no Application.
func (e *Examiner) argo(ctx context.Context) {
	mapping, err := e.Mapper.RESTMapping(applicationKind)
	if err != nil {
		return
	}
	applications := map[string]bool{}
	_, err = e.Each(ctx, kit.Listing{Resource: mapping.Resource, Limit: mostApplications}, func(found kit.Sighting) {
		applications[found.GetName()] = true
		applications[found.GetNamespace()+"_"+found.GetName()] = true // as Argo CD names those outside of its namespace
	})
	if err != nil {
		e.add(argoCheck, CheckUnknown, "", "Applications cannot be listed: %s", e.WhyNot(err))
		return
	}
	if len(applications) == 0 {
		return
	}
	for _, configuration := range e.argoConfigurations(ctx) {
		e.argoTracking(ctx, configuration, applications)
	}
}

// argoConfigurations are the ConfigMaps of the instances of Argo CD.
func (e *Examiner) argoConfigurations(ctx context.Context) []unstructured.Unstructured {
	list, err := e.Bodies.Resource(configMapsResource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + argoConfigMap})
	if err != nil {
		e.add(argoCheck, CheckUnknown, "", "how it tracks objects cannot be read from the ConfigMap %s: %s", argoConfigMap, e.WhyNot(err))
		return nil
	}
	return list.Items
}

// argoTracking compares what is installed with the Applications of an instance of Argo CD.
func (e *Examiner) argoTracking(ctx context.Context, configuration unstructured.Unstructured, applications map[string]bool) {
	data, _, _ := unstructured.NestedStringMap(configuration.Object, "data")
	method, key := data[argoTrackingMethod], cmp.Or(data[argoInstanceKey], defaultArgoInstance)
	at := configuration.GetNamespace() + "/" + configuration.GetName()
	if method != "" && method != "label" {
		e.add(argoCheck, CheckOK, "", "it tracks objects by annotation, so that labels of bundles do not matter (ConfigMap %s)", at)
		return
	}
	how := "it tracks objects by the label " + key
	if method == "" {
		how = "before version 3 " + how
	}
	taken, err := e.labelledAs(ctx, key, applications)
	switch {
	case err != nil:
		e.add(argoCheck, CheckUnknown, "", "%s, and what Satchel installed cannot be compared with its Applications: %s", how, e.WhyNot(err))
	case len(taken) == 0:
		e.add(argoCheck, CheckOK, "", "%s, and nothing that Satchel installed has that of an Application (ConfigMap %s)", how, at)
	default:
		more := ""
		if len(taken) > mostTroubles {
			more = fmt.Sprintf("; and %d more", len(taken)-mostTroubles)
			taken = taken[:mostTroubles]
		}
		e.add(argoCheck, CheckWarning, fmt.Sprintf("Set %s: annotation in the ConfigMap %s.", argoTrackingMethod, at),
			"%s, so that it takes objects which Satchel installed for those of an Application and may prune them: %s%s", how, strings.Join(taken, "; "), more)
	}
}

// labelledAs are the objects in inventories of this cluster that have the name of an Application as the value of a label.
func (e *Examiner) labelledAs(ctx context.Context, key string, applications map[string]bool) ([]string, error) {
	owners, kinds, err := e.inventoried(ctx)
	if err != nil {
		return nil, err
	}
	var taken []string
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) }) {
		mapping, err := e.Mapper.RESTMapping(kind)
		if err != nil {
			continue // its CRD is gone, and so are its objects
		}
		_, err = e.Each(ctx, kit.Listing{Resource: mapping.Resource, Selector: key, Limit: mostLabelled}, func(found kit.Sighting) {
			id := inventory.ID{Group: kind.Group, Kind: kind.Kind, Namespace: found.GetNamespace(), Name: found.GetName()}
			application := found.GetLabels()[key]
			if owner, ours := owners[id]; ours && applications[application] {
				taken = append(taken, fmt.Sprintf("%s of %s, as one of the Application %s", id, owner, application))
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// inventoried are the objects that deployments installed on this cluster, and their kinds.
func (e *Examiner) inventoried(ctx context.Context) (map[inventory.ID]inventory.Owner, map[schema.GroupKind]bool, error) {
	listed, err := e.List(ctx, kit.Deployments, true, "")
	if err != nil {
		return nil, nil, err
	}
	owners, kinds := map[inventory.ID]inventory.Owner{}, map[schema.GroupKind]bool{}
	for i := range listed {
		d := new(v1alpha1.BundleDeployment)
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(listed[i].Object, d); err != nil || effective.IsRemote(d.Spec.Target.ClusterReference) {
			continue // malformed, or on another cluster
		}
		installed, err := inventory.Decode(d.Status.Inventory)
		if err != nil {
			continue
		}
		for _, entry := range installed.Entries {
			owners[entry.ID] = inventory.Owner{Namespace: d.Namespace, Name: d.Name}
			kinds[schema.GroupKind{Group: entry.Group, Kind: entry.Kind}] = true
		}
	}
	return owners, kinds, nil
}
