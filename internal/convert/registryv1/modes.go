// SPDX-License-Identifier: Apache-2.0

package registryv1

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/satchel-dev/satchel/internal/convert/manifest"
)

// modes are the install modes that a bundle supports.
type modes struct{ all, own, single, multi bool }

func supportedModes(b *Bundle) modes {
	var m modes
	for _, mode := range b.CSV.Spec.InstallModes {
		if !mode.Supported {
			continue
		}
		switch mode.Type {
		case v1alpha1.InstallModeTypeAllNamespaces:
			m.all = true
		case v1alpha1.InstallModeTypeOwnNamespace:
			m.own = true
		case v1alpha1.InstallModeTypeSingleNamespace:
			m.single = true
		case v1alpha1.InstallModeTypeMultiNamespace:
			m.multi = true
		}
	}
	return m
}

// String lists the modes by name, sorted.
func (m modes) String() string {
	var names []string
	for _, mode := range []struct {
		name      v1alpha1.InstallModeType
		supported bool
	}{
		{v1alpha1.InstallModeTypeAllNamespaces, m.all},
		{v1alpha1.InstallModeTypeMultiNamespace, m.multi},
		{v1alpha1.InstallModeTypeOwnNamespace, m.own},
		{v1alpha1.InstallModeTypeSingleNamespace, m.single},
	} {
		if mode.supported {
			names = append(names, string(mode.name))
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// targetNamespaces decides what is watched (rules N):
//
//	watch namespaces   modes                            watched
//	none               All                              all
//	none               Own, not Single                  the install namespace, the one legal value
//	none               Single or Multi                  refused: one must be chosen
//	""                 All                              all
//	one, = install     Own                              it
//	one, other         Single or Multi                  it
//	several            Multi; Own if install is in it   them
//
// The result is sorted and without repetitions.
func targetNamespaces(b *Bundle, o Options) ([]string, []manifest.Problem) {
	m := supportedModes(b)
	targets := slices.Compact(slices.Sorted(slices.Values(o.WatchNamespaces)))
	if m == (modes{}) {
		return nil, nil // the validator of C4 says why no choice would do
	}
	if len(targets) == 0 {
		return defaultTargets(b, o, m)
	}
	refuse := func(remedy, message string, args ...any) ([]string, []manifest.Problem) {
		return nil, []manifest.Problem{b.problem("N2", remedy, message+" (supported install modes: "+m.String()+")", args...)}
	}
	if slices.Equal(targets, []string{""}) {
		if m.all {
			return targets, nil
		}
		return refuse("name what it watches in watchNamespaces", "the operator cannot watch all namespaces")
	}
	for _, name := range targets {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return refuse("correct watchNamespaces", "%q is not a valid name of a namespace to watch", name)
		}
	}
	if message, remedy := m.against(targets, o.InstallNamespace); message != "" {
		return refuse(remedy, "%s", message)
	}
	return targets, nil
}

func defaultTargets(b *Bundle, o Options, m modes) ([]string, []manifest.Problem) {
	switch {
	case m.all:
		return []string{""}, nil
	case m.own && !m.single:
		return []string{o.InstallNamespace}, nil
	}
	return nil, []manifest.Problem{b.problem("N2", "name it in watchNamespaces",
		"the operator cannot watch all namespaces, so what it watches must be chosen (supported install modes: %s)", m)}
}

// against says why the modes do not allow the targets, which are valid names, sorted; empty: they do.
func (m modes) against(targets []string, install string) (message, remedy string) {
	switch withInstall := slices.Contains(targets, install); {
	case m.all && !m.own && !m.single && !m.multi:
		return "the operator always watches all namespaces", "leave watchNamespaces empty"
	case len(targets) > 1 && !m.multi:
		return fmt.Sprintf("the operator cannot watch %d namespaces", len(targets)), "name one namespace in watchNamespaces"
	case withInstall && !m.own:
		return fmt.Sprintf("the operator cannot watch %q, the namespace it is installed in", install), "watch or install in another namespace"
	case !withInstall && !m.single && !m.multi:
		return fmt.Sprintf("the operator cannot watch the single namespace %q, which is not the one it is installed in", targets[0]),
			"watch the namespace it is installed in, or leave watchNamespaces empty if it supports AllNamespaces"
	}
	return "", ""
}
