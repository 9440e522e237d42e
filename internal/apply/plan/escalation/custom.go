// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"maps"
	"slices"
	"strings"
)

// custom are the fields of a custom resource of the bundle's own CRDs. The operator of the bundle understands them; but
// Pods are made of parts of it, so that every map at any depth is read as a Pod, a container and a security context. What
// is in none of the tables of pods.go is a field of the operator.
var custom = field{check: search}

func search(f *facts, place string, value any) {
	switch value := value.(type) {
	case map[string]any:
		part(f, place, value)
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if !isSecurityContext(name) {
				search(f, place+"."+name, value[name])
			}
		}
	case []any:
		for i, item := range value {
			search(f, placeOf(place, i, item), item)
		}
	}
}

// privileged are fields of Pods that are in no table, so that they count in custom resources, too.
var privileged = []string{"ephemeralContainers", "gitRepo", "resourceClaims"}

func isSecurityContext(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), "securitycontext")
}

// part reads a map as whatever part of a Pod it may be.
func part(f *facts, place string, of map[string]any) {
	at := spot{place: place}
	if name := text(of["name"]); name != "" && (of["image"] != nil || of["volumeMounts"] != nil) {
		at.prefix = "container " + name + ": "
	}
	f.places[place] = ""
	f.keysOf(place, of, false)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		value := of[name]
		switch {
		case isSecurityContext(name):
			security(f, at, value)
		case slices.Contains(privileged, name):
			f.leave(place+"."+name, value)
		case name == "resources" && fields(value)["limits"] == nil && fields(value)["requests"] == nil: // of another meaning
		case readerOf(name) != nil:
			readerOf(name)(f, at, value)
		case name == "hostPath" && fields(value) != nil, name == "csi" && text(fields(value)["driver"]) != "":
			volume(f, at, map[string]any{name: value})
		}
		referenceOf(f, name, value)
	}
}

// readerOf reads a field that Pods, containers or security contexts have.
func readerOf(name string) func(*facts, spot, any) {
	for _, of := range []readers{podReaders, containerReaders, securityReaders} {
		if of[name] != nil {
			return of[name]
		}
	}
	return nil
}

// referenceOf reads a field that names a Secret, a ConfigMap or a claim.
func referenceOf(f *facts, name string, value any) {
	switch name {
	case "secretName":
		f.refer("", secretKind, value)
	case "claimName":
		f.refer("", claimKind, value)
	case "secretKeyRef", "secretRef":
		f.refer("", secretKind, fields(value)["name"])
	case "configMapKeyRef", "configMapRef":
		f.refer("", configMapKind, fields(value)["name"])
	}
}
