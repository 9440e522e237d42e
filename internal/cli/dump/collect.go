// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// Bounds of what is read for a dump, beside its size.
const (
	mostObjects      = 20_000 // of one kind
	mostDumpedEvents = 5_000  // about one kind
	mostLines        = 20_000 // of one log
)

// unsafeName matches the characters that a file name of the archive must not take from the name of an object.
var unsafeName = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

// SafeName is a name that is safe as a file name.
func SafeName(name string) string {
	return strings.TrimLeft(unsafeName.ReplaceAllString(name, "_"), ".")
}

// scope is the namespace that is read; empty for all.
func (d *dumper) scope() string {
	if d.everywhere {
		return ""
	}
	return d.Cluster.Namespace
}

// summary is what check finds.
func (d *dumper) summary(context.Context) error {
	d.take("what check finds")
	return d.archive.Add("check.txt", []byte(printer.RedactText(d.Report.Print(printer.Style{}))))
}

// write adds an object, redacted.
func (d *dumper) write(name string, object *unstructured.Unstructured) error {
	printer.RedactObject(object.Object)
	text, err := printer.YamlText(object.Object)
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return d.archive.Add(name, text)
}

// objects are those of Satchel.
func (d *dumper) objects(ctx context.Context) error {
	for _, resource := range []string{kit.Deployments.Resource, kit.Sources.Resource, "bundleapprovals", "bundlecatalogs", "bundleimagepolicies"} {
		gvr := schema.GroupVersionResource{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: resource}
		if err := d.all(ctx, gvr, d.scope(), "", mostObjects, "objects", d.object); err != nil {
			return err
		}
	}
	return nil
}

// all passes on the objects of a resource, as many as the limit allows, and notes how many there were.
func (d *dumper) all(ctx context.Context, resource schema.GroupVersionResource, namespace, selector string, limit int, folder string,
	write func(folder string, resource schema.GroupVersionResource, object *unstructured.Unstructured) error,
) error {
	var failed error
	count := 0
	more, err := d.Each(ctx, kit.Listing{Resource: resource, Namespace: namespace, Selector: selector, Whole: true, Limit: limit}, func(found kit.Sighting) {
		if failed == nil && d.archive.room() > 0 {
			failed = write(folder, resource, found.Body)
			count++
		}
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		d.Unreadable("list", resource, namespace, err)
	default:
		d.take("%s: %d", resource.Resource, count)
	}
	if more {
		d.Omitted.Add("more than %d %s", limit, resource.Resource)
	}
	return nil
}

// object writes one of Satchel's objects; the inventory of a deployment is decoded beside it.
func (d *dumper) object(folder string, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
	name := path.Join(folder, SafeName(object.GetNamespace()), resource.Resource, SafeName(object.GetName()))
	if resource.Resource == kit.Deployments.Resource {
		if text := inventoryText(object); text != "" {
			if err := d.archive.Add(name+".inventory.txt", []byte(text)); err != nil {
				return err
			}
		}
	}
	return d.write(name+".yaml", object)
}

// inventoryText is the decoded inventory, an object a line.
func inventoryText(object *unstructured.Unstructured) string {
	o, err := kit.Typed(kit.Deployments, object)
	deployment, isDeployment := o.(*v1alpha1.BundleDeployment)
	if err != nil || !isDeployment || deployment.Status.Inventory == nil {
		return ""
	}
	listed, err := inventory.Decode(deployment.Status.Inventory)
	if err != nil {
		return printer.RedactText(err.Error()) + "\n"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "target %s, %s\n", view.Inline(listed.Target), view.Plural(listed.Len(), "object"))
	for _, entry := range listed.Entries {
		fmt.Fprintf(&text, "%s\t%s\tapplied %t\tmark %q\n", view.Inline(entry.ID.String()), view.Inline(entry.Version), entry.Confirmed(), entry.Mark)
	}
	return text.String()
}

// eventsResource is the resource of events. Those about one kind are selected by a field selector, which listing lacks.
var eventsResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}

// events are those about Satchel's objects, a line each.
func (d *dumper) events(ctx context.Context) error {
	var text strings.Builder
	count := 0
	more, err := d.Each(ctx, kit.Listing{Resource: eventsResource, Namespace: d.scope(), Whole: true, Limit: mostDumpedEvents * 4}, func(found kit.Sighting) {
		group, _, _ := unstructured.NestedString(found.Body.Object, "involvedObject", "apiVersion")
		if count < mostDumpedEvents && (strings.HasPrefix(group, v1alpha1.GroupVersion.Group+"/") || found.GetNamespace() == d.Namespace) {
			count++
			text.WriteString(eventLine(found.Body))
		}
	})
	if err != nil {
		d.Unreadable("list", eventsResource, d.scope(), err)
		return nil
	}
	if more || count == mostDumpedEvents {
		d.Omitted.Add("some of the events: there are more than are read")
	}
	d.take("events: %d", count)
	return d.archive.Add("events.txt", []byte(text.String()))
}

// eventLine is an event in one line.
func eventLine(event *unstructured.Unstructured) string {
	text := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(event.Object, fields...)
		return view.Inline(printer.RedactText(value))
	}
	at := text("lastTimestamp")
	if at == "" {
		at = text("eventTime")
	}
	return fmt.Sprintf("%s\t%s\t%s %s/%s\t%s\t%s\n", at, text("type"), text("involvedObject", "kind"), text("involvedObject", "namespace"),
		text("involvedObject", "name"), text("reason"), text("message"))
}

// crds are the CRDs of Satchel's kinds, without their schemas.
func (d *dumper) crds(ctx context.Context) error {
	for _, t := range check.DefinedTypes {
		name := t.Resource + "." + v1alpha1.GroupVersion.Group
		found, err := d.One(ctx, kit.DefinitionsResource, "", name, true)
		if err != nil {
			d.Unreadable("get", kit.DefinitionsResource, "", err)
			continue
		}
		versions, _, _ := unstructured.NestedSlice(found.Body.Object, "spec", "versions")
		for i := range versions {
			if one, isObject := versions[i].(map[string]any); isObject {
				delete(one, "schema")
				delete(one, "additionalPrinterColumns")
			}
		}
		_ = unstructured.SetNestedSlice(found.Body.Object, versions, "spec", "versions") // it was there
		if err := d.write(path.Join("definitions", name+".yaml"), found.Body); err != nil {
			return err
		}
	}
	return nil
}

// system is what runs in the controllers' namespace.
func (d *dumper) system(ctx context.Context) error {
	for _, of := range []struct {
		resource schema.GroupVersionResource
		selector string
	}{
		{check.WorkloadsResource, check.PartOfSatchel}, {check.PodsResource, check.PartOfSatchel}, {check.ServicesResource, check.PartOfSatchel}, {check.LeasesResource, ""}, {check.PoliciesResource, ""},
		{schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}, check.PartOfSatchel},
	} {
		write := func(folder string, resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
			return d.write(path.Join(folder, resource.Resource, SafeName(object.GetName())+".yaml"), object)
		}
		if err := d.all(ctx, of.resource, d.Namespace, of.selector, mostObjects, "system", write); err != nil {
			return err
		}
	}
	return nil
}
