// SPDX-License-Identifier: Apache-2.0

package impact

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/rights"
)

// Subject is the subject of a permission. Its kind is that of a subject of a binding; or Role or
// ClusterRole, for all subjects that others than the bundle bind to it.
type Subject struct {
	Kind, Namespace, Name string
}

// String names the subject.
func (s Subject) String() string {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return fmt.Sprintf("service account %q", s.Namespace+"/"+s.Name)
	case kindRole:
		return fmt.Sprintf("subjects bound to Role %q", s.Namespace+"/"+s.Name)
	case kindClusterRole:
		return fmt.Sprintf("subjects bound to ClusterRole %q", s.Name)
	case rbacv1.UserKind, rbacv1.GroupKind:
		return fmt.Sprintf("%s %q", strings.ToLower(s.Kind), s.Name)
	}
	return fmt.Sprintf("%.100q %q", s.Kind, s.Name)
}

func (s Subject) compare(other Subject) int {
	return cmp.Or(strings.Compare(s.Kind, other.Kind), strings.Compare(s.Namespace, other.Namespace), strings.Compare(s.Name, other.Name))
}

// subjectOf reads a subject of a binding. A service account may be written as a user.
func subjectOf(item any, namespace string) Subject {
	fields, _ := item.(map[string]any)
	text := func(name string) string {
		value, _ := fields[name].(string)
		return value
	}
	subject := Subject{Kind: text("kind"), Name: text("name")}
	if subject.Kind == rbacv1.ServiceAccountKind {
		subject.Namespace = cmp.Or(text("namespace"), namespace)
	}
	parts := strings.Split(subject.Name, ":")
	if subject.Kind == rbacv1.UserKind && len(parts) == 4 && parts[0] == "system" && parts[1] == "serviceaccount" {
		subject = Subject{Kind: rbacv1.ServiceAccountKind, Namespace: parts[2], Name: parts[3]}
	}
	return subject
}

// also are the groups that a subject always belongs to.
func (s Subject) also() []Subject {
	group := func(name string) Subject { return Subject{Kind: rbacv1.GroupKind, Name: name} }
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return []Subject{s, group("system:serviceaccounts:" + s.Namespace), group("system:serviceaccounts"), group("system:authenticated")}
	case rbacv1.UserKind:
		return []Subject{s, group("system:authenticated")}
	}
	return []Subject{s}
}

// Permission are the new permissions of a subject at a place.
type Permission struct {
	Subject   Subject
	Namespace string // empty: in the whole cluster
	// Rights are minimal: none covers another one. Sorted.
	Rights []rights.Right
	// Unknown describes further permissions that cannot be read from the objects: `all that
	// ClusterRole "cluster-admin" allows, which is not among the objects`. Sorted.
	Unknown []string
}

// String describes the permission: `service account "shop/web", in the whole
// cluster: get, list pods`.
func (p Permission) String() string {
	where := "in the whole cluster"
	if p.Namespace != "" {
		where = fmt.Sprintf("in namespace %q", p.Namespace)
	}
	return fmt.Sprintf("%s, %s: %s", p.Subject, where, strings.Join(p.Words(), "; "))
}

// Words describe the permissions, as "get, list pods".
func (p Permission) Words() []string { return append(rights.Words(p.Rights, nil), p.Unknown...) }

// mostComparisons bounds the comparisons of single permissions with the held ones, for two
// bundles. Beyond that permissions count as new.
const mostComparisons = 200_000

// tooMany stands for permissions beyond the limit.
const tooMany = "more than can be compared: the roles and bindings are too many"

// permissionDiff compares the permissions of subjects.
type permissionDiff struct {
	before, after access
	left          int // of mostComparisons
	// reported are the permissions of parts that are new to subjects outside of the bundle's roles.
	// The zero Right stands for unknown permissions.
	reported map[*part]map[rights.Right]bool
	former   map[Subject][]Subject // names that roles had before
}

func permissions(was, will objects) []Permission {
	g := permissionDiff{before: accessOf(was), after: accessOf(will), left: mostComparisons, reported: map[*part]map[rights.Right]bool{}}
	g.former = formerNames(g.before)
	subjects := slices.SortedFunc(maps.Keys(g.after.grants), func(a, b Subject) int {
		return cmp.Or(g.rank(a)-g.rank(b), a.compare(b))
	})
	var list []Permission
	for _, subject := range subjects {
		list = append(list, g.of(subject, g.after.grants[subject])...)
	}
	return list
}

// rank sorts subjects that the bundle names first, then those that are bound to roles of the
// cluster, and last those that others bind to roles of the bundle: permissions that are reported
// for the former need not be reported for them.
func (g *permissionDiff) rank(s Subject) int {
	switch {
	case s.Kind != kindRole && s.Kind != kindClusterRole:
		return 0
	case g.after.roles[inventory.ID{Group: rbacv1.GroupName, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}] == nil:
		return 1
	}
	return last
}

const last = 2

// of are the new permissions of a subject; cluster-wide ones come first.
func (g *permissionDiff) of(subject Subject, grants map[string][]*part) []Permission {
	var list []Permission
	var everywhere Permission
	for _, namespace := range slices.Sorted(maps.Keys(grants)) {
		g.left -= len(everywhere.Rights)
		p := g.at(subject, namespace, grants[namespace])
		p.Rights = rights.Minimal(p.Rights, everywhere.Rights)
		p.Unknown = slices.DeleteFunc(p.Unknown, func(text string) bool { return slices.Contains(everywhere.Unknown, text) })
		if len(p.Rights)+len(p.Unknown) == 0 {
			continue
		}
		list = append(list, p)
		if namespace == "" {
			everywhere = p
		}
	}
	return list
}

// at are the new permissions of a subject at a place.
func (g *permissionDiff) at(subject Subject, namespace string, parts []*part) Permission {
	held, seen := g.held(subject, namespace), map[string]bool{}
	p := Permission{Subject: subject, Namespace: namespace}
	for _, part := range parts {
		if seen[part.key] || held[part.key] != nil {
			continue
		}
		seen[part.key] = true
		if part.opaque != "" {
			if g.report(subject, part, rights.Right{}) {
				p.Unknown = append(p.Unknown, part.opaque)
			}
			continue
		}
		if g.left -= len(part.rights) * (len(held) + 1); g.left < 0 {
			p.Unknown = append(p.Unknown, tooMany)
			continue
		}
		for _, right := range part.rights { // URLs mean nothing within a namespace
			if (right.URL == "" || namespace == "") && !covered(right, held) && g.report(subject, part, right) {
				p.Rights = append(p.Rights, right)
			}
		}
	}
	slices.Sort(p.Unknown)
	p.Unknown = slices.Compact(p.Unknown)
	return p
}

// report records that a permission of a part is new to a subject; false if it is reported for
// other subjects already.
func (g *permissionDiff) report(subject Subject, of *part, right rights.Right) bool {
	if g.rank(subject) == last {
		return !g.reported[of][right]
	}
	if g.reported[of] == nil {
		g.reported[of] = map[rights.Right]bool{}
	}
	g.reported[of][right] = true
	return true
}

// held are the earlier permissions of a subject at a place, by the keys of the parts.
func (g *permissionDiff) held(subject Subject, namespace string) map[string]*part {
	held := map[string]*part{}
	for _, who := range slices.Concat(subject.also(), g.formerly(subject)) {
		for _, place := range []string{"", namespace} {
			for _, part := range g.before.grants[who][place] {
				held[part.key] = part
			}
		}
	}
	return held
}

func covered(right rights.Right, held map[string]*part) bool {
	for _, part := range held {
		if part.rules.Cover(right) {
			return true
		}
	}
	return false
}
