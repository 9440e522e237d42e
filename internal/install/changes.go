// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// change applies a part of the options.
type change func(Options, []*unstructured.Unstructured) ([]*unstructured.Unstructured, error)

// changes are all changes, in their order; the namespace comes last, so that it applies to objects that others add.
var changes = []change{images, replicas, storage, selector, networkPolicies, authenticatedArtifacts, tenants, namespace}

// each edits the objects of a kind in place.
func each(objects []*unstructured.Unstructured, kind string, edit func(*unstructured.Unstructured) error) error {
	for _, o := range objects {
		if o.GetKind() != kind {
			continue
		}
		if err := edit(o); err != nil {
			return err
		}
	}
	return nil
}

// without drops objects.
func without(objects []*unstructured.Unstructured, drop func(*unstructured.Unstructured) bool) []*unstructured.Unstructured {
	return slices.DeleteFunc(objects, drop)
}

// podPath leads to the Pod of a Deployment.
var podPath = []string{"spec", "template", "spec"}

func inPod(field ...string) []string { return slices.Concat(podPath, field) }

// editList edits the elements of a list of objects, where there is one.
func editList(o *unstructured.Unstructured, edit func(element map[string]any) error, path ...string) error {
	list, found, err := unstructured.NestedSlice(o.Object, path...)
	if err != nil || !found {
		return err
	}
	for _, element := range list {
		fields, isObject := element.(map[string]any)
		if !isObject {
			return fmt.Errorf("%s %s: %s holds something other than objects", o.GetKind(), o.GetName(), strings.Join(path, "."))
		}
		if err := edit(fields); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(o.Object, list, path...)
}

// editContainer edits the one container of a Deployment.
func editContainer(o *unstructured.Unstructured, edit func(container map[string]any) error) error {
	return editList(o, edit, inPod("containers")...)
}

// addArgs appends arguments to the command line of a controller.
func addArgs(o *unstructured.Unstructured, added ...string) error {
	return editContainer(o, func(container map[string]any) error {
		args, _, err := unstructured.NestedStringSlice(container, "args")
		if err != nil {
			return err
		}
		return unstructured.SetNestedStringSlice(container, append(args, added...), "args")
	})
}

// addTo appends an element to a list of an object.
func addTo(object map[string]any, element any, path ...string) error {
	list, _, err := unstructured.NestedSlice(object, path...)
	if err != nil {
		return err
	}
	return unstructured.SetNestedSlice(object, append(list, element), path...)
}

func images(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	return objects, each(objects, "Deployment", func(d *unstructured.Unstructured) error {
		for _, secret := range o.PullSecrets {
			if err := addTo(d.Object, map[string]any{"name": secret}, inPod("imagePullSecrets")...); err != nil {
				return err
			}
		}
		return editContainer(d, func(container map[string]any) error {
			container["image"] = o.Image(d.GetName())
			return nil
		})
	})
}

// replicas sets the number of replicas. Several share no volume, so they use a rolling update.
func replicas(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if o.Replicas <= 1 {
		return objects, nil
	}
	return objects, each(objects, "Deployment", func(d *unstructured.Unstructured) error {
		unstructured.RemoveNestedField(d.Object, "spec", "strategy")
		return unstructured.SetNestedField(d.Object, o.Replicas, "spec", "replicas")
	})
}

func storage(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if o.EphemeralStorage {
		objects = without(objects, func(p *unstructured.Unstructured) bool { return p.GetKind() == "PersistentVolumeClaim" })
		return objects, each(objects, "Deployment", ephemeral)
	}
	return objects, each(objects, "PersistentVolumeClaim", func(claim *unstructured.Unstructured) error {
		if o.StorageClass != "" {
			if err := unstructured.SetNestedField(claim.Object, o.StorageClass, "spec", "storageClassName"); err != nil {
				return err
			}
		}
		if size := o.StorageSizes[claim.GetName()]; size != "" {
			return unstructured.SetNestedField(claim.Object, size, "spec", "resources", "requests", "storage")
		}
		return nil
	})
}

// ephemeral puts empty folders in the place of claimed volumes.
func ephemeral(d *unstructured.Unstructured) error {
	return editList(d, func(volume map[string]any) error {
		if _, claimed := volume["persistentVolumeClaim"]; claimed {
			delete(volume, "persistentVolumeClaim")
			volume["emptyDir"] = map[string]any{}
		}
		return nil
	}, inPod("volumes")...)
}

// selector limits each controller to objects with a label selector (a shard). The lease of a shard has its own name, which
// ends in a hash.
func selector(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if o.Selector == "" {
		return objects, nil
	}
	if err := each(objects, "Deployment", func(d *unstructured.Unstructured) error {
		return addArgs(d, "--watch-label-selector="+o.Selector)
	}); err != nil {
		return nil, err
	}
	return objects, each(objects, "Role", func(role *unstructured.Unstructured) error {
		return editList(role, func(rule map[string]any) error {
			if groups, _ := rule["apiGroups"].([]any); slices.Contains(groups, any("coordination.k8s.io")) {
				delete(rule, "resourceNames")
			}
			return nil
		}, "rules")
	})
}

func networkPolicies(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	if !o.WithoutNetworkPolicies {
		return objects, nil
	}
	return without(objects, func(p *unstructured.Unstructured) bool { return p.GetKind() == "NetworkPolicy" }), nil
}

// namespace moves everything to another namespace than satchel-system: objects, subjects, and the names of Services and
// ServiceAccounts in command lines.
func namespace(o Options, objects []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	to := o.namespace()
	for _, object := range objects {
		switch {
		case object.GetKind() == "Namespace":
			object.SetName(to)
		case object.GetNamespace() == DefaultNamespace:
			object.SetNamespace(to)
		}
		if err := editList(object, func(subject map[string]any) error {
			subject["namespace"] = to
			return nil
		}, "subjects"); err != nil {
			return nil, err
		}
	}
	within := strings.NewReplacer("."+DefaultNamespace+".svc", "."+to+".svc", ":"+DefaultNamespace+":", ":"+to+":")
	return objects, each(objects, "Deployment", func(d *unstructured.Unstructured) error {
		return editContainer(d, func(container map[string]any) error {
			args, _, err := unstructured.NestedStringSlice(container, "args")
			if err != nil {
				return err
			}
			for i := range args {
				args[i] = within.Replace(args[i])
			}
			return unstructured.SetNestedStringSlice(container, args, "args")
		})
	})
}
