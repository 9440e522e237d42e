// SPDX-License-Identifier: Apache-2.0

package deployment_test

import (
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// linked are files of a bundle of which some became links.
type linked struct {
	fs.FS
	links []string
}

// LeftOut names the links, as the files of a source do.
func (l linked) LeftOut() []string { return l.links }

// without are files of which some became links.
func without(files fstest.MapFS, links ...string) linked {
	left := maps.Clone(files)
	for _, name := range links {
		delete(left, name)
	}
	return linked{left, links}
}

// TestF54PruneOfLinks: a file of a bundle becomes a link. Its object stays, also in a later revision that still has the link, while others
// are pruned; it goes with the link, or by an approval, and is the bundle's again with the file.
func TestF54PruneOfLinks(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	template := func(name string) *fstest.MapFile {
		return file("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {value: one}\n")
	}
	for name, tc := range map[string]struct {
		link  string // what becomes a link; ConfigMap b is in it, and c in another file
		files fstest.MapFS
		c     string
	}{
		"plain": {"b.yaml", fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one"), "c.yaml": configMap("c", "one")}, "c.yaml"},
		"chart": {"templates/b.yaml", chart(fstest.MapFS{"templates/a.yaml": template("a"), "templates/b.yaml": template("b"), "templates/c.yaml": template("c")}), "templates/c.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := r.namespace(t)
			published := r.publish(t, namespace, "app", "v1", tc.files)
			key := r.deploy(t, namespace, "app", rarely)
			r.ready(t, key, published.Revision)

			published = r.publish(t, namespace, "app", "v2", without(tc.files, tc.link))
			d := r.until(t, key, "held", isHeld)
			message := r.ready(t, key, published.Revision).Status.Conditions
			if text := describe(d); !strings.Contains(text, tc.link) || !strings.Contains(text, "ConfigMap "+namespace+"/b.") || strings.Contains(text, "ConfigMap "+namespace+"/c") {
				t.Errorf("the status names neither the file nor the object, or others: %v\n%s", message, text)
			}
			if !slices.ContainsFunc(d.Status.Warnings, func(w string) bool { return strings.Contains(w, tc.link) }) {
				t.Errorf("the warnings are %q", d.Status.Warnings)
			}
			r.told(t, namespace, "FilesLeftOut: ")
			r.told(t, namespace, "PruneHeld: ")

			later := maps.Clone(tc.files)
			delete(later, tc.c)
			published = r.publish(t, namespace, "app", "v3", without(later, tc.link))
			r.ready(t, key, published.Revision)
			r.gone(t, aConfigMap(namespace, "c"))
			r.holds(t, namespace, "b", "one")

			published = r.publish(t, namespace, "app", "v4", later)
			d = r.ready(t, key, published.Revision)
			r.holds(t, namespace, "b", "one")
			if isHeld(d) || len(d.Status.Warnings) > 0 {
				t.Errorf("with the file again:\n%s", describe(d))
			}

			r.publish(t, namespace, "app", "v5", without(later, tc.link))
			r.until(t, key, "held again", isHeld)
			delete(later, tc.link)
			published = r.publish(t, namespace, "app", "v6", later)
			r.ready(t, key, published.Revision)
			r.gone(t, aConfigMap(namespace, "b"))
		})
	}
}

// TestF54ApprovalOfPrune: what a link holds goes by an approval as well.
func TestF54ApprovalOfPrune(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	namespace := r.namespace(t)
	files := fstest.MapFS{"a.yaml": configMap("a", "one"), "b.yaml": configMap("b", "one")}
	published := r.publish(t, namespace, "app", "v1", files)
	key := r.deploy(t, namespace, "app", rarely)
	r.ready(t, key, published.Revision)
	published = r.publish(t, namespace, "app", "v2", without(files, "b.yaml"))
	held, plan := r.awaits(t, key, published.Revision, v1alpha1.ReasonPruneHeld)
	r.decide(t, key, plan)
	r.gone(t, aConfigMap(namespace, "b"))
	d := r.until(t, key, "nothing held", func(d *v1alpha1.BundleDeployment) bool { return !isHeld(d) })
	if !slices.ContainsFunc(d.Status.Warnings, func(w string) bool { return strings.Contains(w, "b.yaml") }) {
		t.Errorf("the warnings are %q, and were %q:\n%s", d.Status.Warnings, held.Status.Warnings, describe(d))
	}
}
