// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// mostUnfollowed bounds the warnings about references that are not updated.
const mostUnfollowed = 20

// builtInGroups are the API groups of Kubernetes itself: the references of their kinds are in tables.
var builtInGroups = []string{
	"", "admissionregistration.k8s.io", "apiextensions.k8s.io", "apiregistration.k8s.io", "apps", "authentication.k8s.io", "authorization.k8s.io",
	"autoscaling", "batch", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io", "extensions",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "rbac.authorization.k8s.io",
	"resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io", "storagemigration.k8s.io",
}

// unfollowed finds fields of one object that seem to name a renamed object and are in no table.
type unfollowed struct {
	namespace string // of the object
	renamed   map[string][]renamed
	found     []string // at most one more than may be reported
}

// renamed is an object under a name that it had, with the one that it has in the end.
type renamed struct {
	was manifest.ID
	now string
}

// warnOfFormerNames warns of fields that seem to name an object by a name that it does not have any more.
func (r *run) warnOfFormerNames() {
	all := map[string][]renamed{}
	add := func(former []manifest.ID, now string) {
		for _, was := range former {
			if was.Name != now {
				all[was.Name] = append(all[was.Name], renamed{was, now})
			}
		}
	}
	entries := r.left()
	for _, e := range entries {
		add(e.former, e.now.Name)
	}
	for _, c := range r.companions {
		add(c.former, c.now.Name)
	}
	if len(all) == 0 {
		return
	}
	for _, e := range entries {
		r.warnOfNames(e, all)
	}
}

// warnOfNames warns of fields of a custom resource, and of parameters of an admission policy outside the bundle, that seem to
// name a renamed object.
func (r *run) warnOfNames(e *entry, all map[string][]renamed) {
	u := unfollowed{namespace: e.now.Namespace, renamed: all}
	object, kind := e.Object.Object, e.now.GroupKind
	if slices.Contains(builtInGroups, kind.Group) {
		spec, _ := object["spec"].(map[string]any)
		if param, _ := spec["paramRef"].(map[string]any); param != nil {
			u.walk(param, "spec.paramRef", "paramRef")
		}
	} else {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if key != "metadata" && key != "status" && key != "kind" && key != "apiVersion" {
				u.field(object, key, key, key)
			}
		}
	}
	for _, field := range u.found {
		if r.unfollowed++; r.unfollowed > mostUnfollowed {
			return
		}
		r.warn("%s %s: %s. References in such fields are not updated: if this is one, patch it", kind.Kind, e.Object.GetName(), field)
	}
}

// walk looks at a value. The hint is the key under which it stands, or the one of the list that it is an item of.
func (u *unfollowed) walk(value any, path, hint string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "name" || key == "names" {
				u.field(v, key, path+"."+key, hint)
				continue
			}
			u.field(v, key, path+"."+key, key)
		}
	case []any:
		for i, item := range v {
			if name, ok := item.(string); ok {
				u.compare(nil, name, fmt.Sprintf("%s[%d]", path, i), hint)
				continue
			}
			u.walk(item, fmt.Sprintf("%s[%d]", path, i), hint)
		}
	}
}

// field looks at one field of a mapping.
func (u *unfollowed) field(holder map[string]any, key, path, hint string) {
	if len(u.found) > mostUnfollowed {
		return
	}
	if name, ok := holder[key].(string); ok {
		u.compare(holder, name, path, hint)
		return
	}
	u.walk(holder[key], path, hint)
}

// compare notes a string that is the former name of an object to which its place points.
func (u *unfollowed) compare(holder map[string]any, name, path, hint string) {
	namespace, kind := u.namespace, ""
	if holder != nil {
		if given, _ := holder["namespace"].(string); given != "" {
			namespace = given
		}
		kind, _ = holder["kind"].(string)
	}
	for _, object := range u.renamed[name] {
		near := object.was.Namespace == "" || namespace == "" || object.was.Namespace == namespace
		if near && pointsTo(hint, kind, object.was.Kind) {
			u.found = append(u.found, fmt.Sprintf("%s is %q, and the %s of this name is called %s now", path, name, object.was.Kind, object.now))
			return
		}
	}
}

// generic are the ends of names of fields that hold references to objects of any kind.
var generic = regexp.MustCompile(`(?i)(ref|reference|backend|target)s?$`)

// pointsTo tells whether a field with such a name, beside a kind if that is not empty, may name an object of a kind.
func pointsTo(hint, kind, of string) bool {
	if kind != "" {
		return kind == of
	}
	return strings.Contains(strings.ToLower(hint), strings.ToLower(of)) || generic.MatchString(hint)
}
