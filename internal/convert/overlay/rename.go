// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// renames are the names of objects that a step calls otherwise, by what they were before it.
type renames struct {
	exact map[manifest.ID]string
	// anywhere are those of which the namespace does not matter, for references that name none.
	anywhere map[manifest.ID]string
	// kinds are theirs, by the resources that rules of Roles name.
	kinds map[schema.GroupResource]schema.GroupKind
	// params are the kinds of the parameters of admission policies, by the names that these had.
	params map[manifest.ID]schema.GroupKind
}

// newName is the name of an object now.
func (r renames) newName(kind schema.GroupKind, namespace, name string) string {
	if now, renamed := r.exact[manifest.ID{GroupKind: kind, Namespace: namespace, Name: name}]; renamed {
		return now
	}
	return name
}

// newNameAnywhere is the name of an object, whatever its namespace.
func (r renames) newNameAnywhere(kind schema.GroupKind, name string) string {
	if now, renamed := r.anywhere[manifest.ID{GroupKind: kind, Name: name}]; renamed {
		return now
	}
	return name
}

// fixed are kinds that keep the names of their objects: the API server requires the name, or the objects of a namespace
// would have to move.
var fixed = []schema.GroupKind{
	kindOf("apiextensions.k8s.io", "CustomResourceDefinition"), kindOf("apiregistration.k8s.io", "APIService"), kindOf("", "Namespace"),
}

// rename puts prefix and suffix around the names of objects, and follows these, and names that patches changed, where
// objects name one another.
func (r *run) rename(field string, names Names) {
	if len(r.problems) > 0 {
		return
	}
	r.renames = renames{
		exact: map[manifest.ID]string{}, anywhere: map[manifest.ID]string{}, kinds: map[schema.GroupResource]schema.GroupKind{},
		params: map[manifest.ID]schema.GroupKind{},
	}
	entries, found := r.left(), 0
	for _, e := range entries {
		if names.Prefix+names.Suffix != "" && !slices.Contains(fixed, e.Object.GroupVersionKind().GroupKind()) && e.Object.GetName() != "" {
			e.Object.SetName(names.Prefix + e.Object.GetName() + names.Suffix)
			r.refuseLongName(field, e)
			found++
		}
		e.former = r.remember(e.former, e.before, e.Object.GetName())
	}
	for i := range r.companions {
		c := &r.companions[i]
		before := c.now
		c.now.Name = names.Prefix + before.Name + names.Suffix
		c.former = r.remember(c.former, before, c.now.Name)
	}
	if names.Prefix+names.Suffix != "" && found == 0 {
		r.warn("%s changes no name: the bundle has no objects but CustomResourceDefinitions, APIServices and Namespaces", field)
	}
	r.refuseCollisions(field)
	if len(r.renames.exact) == 0 || len(r.problems) > 0 {
		return
	}
	for _, e := range entries {
		r.rememberParams(e)
	}
	for _, e := range entries {
		f := follower{renames: r.renames, namespace: r.identify(e.Manifest).Namespace, object: e.Object.Object}
		f.follow(e.Object.GroupVersionKind().GroupKind())
	}
}

// allRenames are the names that objects have in the end, by what they are in the bundle.
func (r *run) allRenames() renames {
	all := renames{exact: map[manifest.ID]string{}}
	for _, e := range r.left() {
		all.exact[e.original] = e.Object.GetName()
	}
	for _, c := range r.companions {
		all.exact[c.original] = c.now.Name
	}
	return all
}

// rememberParams remembers the kind of the parameters of an admission policy.
func (r *run) rememberParams(e *entry) {
	kind := e.Object.GroupVersionKind().GroupKind()
	if kind != validatingPolicy && kind != mutatingPolicy {
		return
	}
	spec, _ := e.Object.Object["spec"].(map[string]any)
	param, _ := spec["paramKind"].(map[string]any)
	version, _ := param["apiVersion"].(string)
	name, _ := param["kind"].(string)
	if parsed, err := schema.ParseGroupVersion(version); err == nil {
		r.renames.params[manifest.ID{GroupKind: kind, Name: e.before.Name}] = kindOf(parsed.Group, name)
	}
}

// remember has references to an object followed, if it is called otherwise now than before the step, and adds what it was
// then to its former names.
func (r *run) remember(former []manifest.ID, was manifest.ID, now string) []manifest.ID {
	if now == was.Name {
		return former
	}
	r.renames.exact[was] = now
	anywhere := manifest.ID{GroupKind: was.GroupKind, Name: was.Name}
	if _, there := r.renames.anywhere[anywhere]; !there {
		r.renames.anywhere[anywhere] = now
	}
	plural, _ := meta.UnsafeGuessKindToResource(was.WithVersion("v1"))
	r.renames.kinds[plural.GroupResource()] = was.GroupKind
	return append(former, was)
}

// refuseLongName refuses what only the API server would refuse, object by object.
func (r *run) refuseLongName(field string, e *entry) {
	most := 253
	if e.Object.GetKind() == "Service" && e.Object.GetAPIVersion() == "v1" {
		most = 63
	}
	if name := e.Object.GetName(); len(name) > most {
		r.refuseAt(e, fmt.Sprintf("with %s its name has %d characters, and %d at most are allowed", field, len(name), most), "shorten it")
	}
}
