// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/spec/effective"
)

// mostSearched bounds the deployments of which the inventories are looked through, and pageOfInventories how many
// are held at once.
const (
	mostSearched      = 5000
	pageOfInventories = 50
)

// found records that a deployment's inventory lists an object on the way up.
func (c *Climber) found(d *v1alpha1.BundleDeployment, at Link) {
	owner := inventory.Owner{Namespace: d.Namespace, Name: d.Name}
	c.Result.Verdict, c.Result.Explanation = ListedVerdict, fmt.Sprintf("the inventory of %s lists %s", owner, at.ID())
	for _, made := range c.claims {
		if made.owner != owner && made.labelled {
			c.Result.Notes = append(c.Result.Notes, fmt.Sprintf("the labels of %s name %s, and its inventory does not list the object: they are copied or forged, and are ignored", c.Links[made.link].ID(), made.owner))
		}
	}
	if revision := d.Status.Attempted.Revision; revision != "" && revision != d.Status.Applied.Revision {
		c.Result.Notes = append(c.Result.Notes, fmt.Sprintf("revision %s is being tried, or failed; objects may be of that one", revision))
	}
}

// searched searches the inventories of the namespace, and of all namespaces if the user may. An object that is in none gets
// the verdict of its labels and owners.
func (c *Climber) searched(ctx context.Context) (*v1alpha1.BundleDeployment, error) {
	for _, namespace := range slices.Compact([]string{c.Links[0].Namespace, ""}) {
		d, at, err := c.search(ctx, namespace)
		switch {
		case kit.IsAPIMissing(err):
			c.Omitted.Add("deployments: this cluster has no Satchel; where the labels name a deployment of another cluster, choose that with --context")
		case apierrors.IsForbidden(err):
			c.Unreadable("list", v1alpha1.GroupVersion.WithResource(kit.Deployments.Resource), namespace, err)
		case err != nil:
			return nil, err
		case d != nil:
			c.found(d, at)
			return d, nil
		}
	}
	c.judge()
	return nil, nil
}

// search pages through deployments, and returns the first that lists the object or the nearest of its owners.
func (c *Climber) search(ctx context.Context, namespace string) (*v1alpha1.BundleDeployment, Link, error) {
	options := metav1.ListOptions{Limit: pageOfInventories}
	resource := c.Bodies.Resource(v1alpha1.GroupVersion.WithResource(kit.Deployments.Resource)).Namespace(namespace)
	for seen := 0; seen < mostSearched; {
		list, err := resource.List(ctx, options)
		if err != nil {
			return nil, Link{}, &kit.AccessError{Verb: "list", Resource: kit.Deployments.Resource, Namespace: namespace, Err: err}
		}
		for i := range list.Items {
			d := new(v1alpha1.BundleDeployment)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, d); err != nil {
				c.Omitted.Add("what BundleDeployment %s/%s installed: %v", list.Items[i].GetNamespace(), list.Items[i].GetName(), err)
				continue
			}
			for _, link := range c.Links {
				if c.lists(d, []Link{link}) {
					return d, link, nil
				}
			}
		}
		seen += len(list.Items)
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return nil, Link{}, nil
		}
	}
	c.Omitted.Add("deployments beyond the first %d: their inventories were not searched", mostSearched)
	return nil, Link{}, nil
}

// judge says why the object belongs to no deployment, by its labels; a verdict about an owner takes precedence.
//
//	left behind, or an owner is gone   said already
//	labels name a deployment           it does not list the object, is of another cluster, or does not exist
//	nothing                            not installed by Satchel
func (c *Climber) judge() {
	for _, made := range c.claims {
		who, what := c.Links[made.link].ID(), "the labels of %s name %s, "
		if !made.labelled {
			what = "fields of %s were written for %s, "
		}
		d := c.known[made.owner]
		text := fmt.Sprintf(what, who, made.owner)
		switch {
		case d == nil:
			c.conclude(abandonedVerdict, text+"which does not exist here or may not be read by you; no deployment manages the object")
		case effective.IsRemote(d.Spec.Target.ClusterReference):
			c.conclude(unlistedVerdict, text+"which installs on another cluster")
		default:
			c.conclude(unlistedVerdict, text+"and its inventory does not list the object: they are copied or forged, or the object left the bundle and was kept")
		}
	}
	if len(c.Links) > 1 {
		top := c.Links[len(c.Links)-1]
		c.conclude(ForeignVerdict, fmt.Sprintf("%s has no owner, and no inventory that you may read lists it", top.ID()))
	}
	c.conclude(ForeignVerdict, "no inventory that you may read lists it, and it has no owner")
}

// conclude sets the verdict, or adds the explanation to the existing one.
func (c *Climber) conclude(v traceVerdict, explanation string) {
	switch {
	case c.Result.Verdict == "":
		c.Result.Verdict, c.Result.Explanation = v, explanation
	case v != ForeignVerdict:
		c.Result.Notes = append(c.Result.Notes, explanation)
	}
}
