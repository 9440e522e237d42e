// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"fmt"
	"maps"
	"slices"
)

const (
	drops    = "capabilities.drop "
	dropsAll = drops + "ALL"
)

// harmlessInSecurity are the fields of security contexts of which every value is harmless.
var harmlessInSecurity = []string{"fsGroup", "fsGroupChangePolicy", "runAsGroup", "supplementalGroupsPolicy"}

var securityReaders = readers{
	"allowPrivilegeEscalation": func(f *facts, at spot, value any) {
		f.hold(isTrue(value), at, "allows privilege escalation")
		f.bind(isFalse(value), at, "allowPrivilegeEscalation: false")
	},
	"appArmorProfile": profile("appArmorProfile"),
	"capabilities": func(f *facts, at spot, value any) {
		for _, item := range list(fields(value)["add"]) {
			f.hold(true, at, "has the capability "+text(item))
		}
		for _, item := range list(fields(value)["drop"]) {
			f.bind(true, at, drops+text(item))
		}
	},
	"privileged":             power("is privileged"),
	"procMount":              named("sees all of /proc: procMount ", "Default"),
	"readOnlyRootFilesystem": func(f *facts, at spot, value any) { f.bind(isTrue(value), at, "readOnlyRootFilesystem: true") },
	"runAsNonRoot":           func(f *facts, at spot, value any) { f.bind(isTrue(value), at, "runAsNonRoot: true") },
	"runAsUser": func(f *facts, at spot, value any) {
		f.hold(scalar(value) == "0", at, "runs as root")
	},
	"seLinuxOptions": func(f *facts, at spot, value any) {
		for _, option := range slices.Sorted(maps.Keys(fields(value))) {
			f.hold(true, at, fmt.Sprintf("has the SELinux %s %s", option, scalar(fields(value)[option])))
		}
	},
	"seccompProfile": profile("seccompProfile"),
	"supplementalGroups": func(f *facts, at spot, value any) {
		for _, group := range list(value) {
			f.hold(true, at, "belongs to the group "+scalar(group))
		}
	},
	"sysctls": func(f *facts, at spot, value any) {
		for _, item := range list(value) {
			f.hold(true, at, fmt.Sprintf("sets the sysctl %s=%s", text(fields(item)["name"]), scalar(fields(item)["value"])))
		}
	},
	"windowsOptions": func(f *facts, at spot, value any) {
		f.hold(isTrue(fields(value)["hostProcess"]), at, "runs on the node")
		for _, option := range []string{"gmsaCredentialSpec", "gmsaCredentialSpecName"} {
			f.hold(text(fields(value)[option]) != "", at, "has the identity of windowsOptions."+option)
		}
	},
}

// profile reads a seccomp or AppArmor profile: one of the node may allow anything.
func profile(name string) func(*facts, spot, any) {
	return func(f *facts, at spot, value any) {
		switch kind := text(fields(value)["type"]); kind {
		case "":
		case "RuntimeDefault":
			f.bind(true, at, "a "+name)
		case "Unconfined":
			f.hold(true, at, "has no "+name)
		default:
			f.bind(true, at, "a "+name)
			f.hold(true, at, fmt.Sprintf("has the %s %s %s", name, kind, text(fields(value)["localhostProfile"])))
		}
	}
}

// security reads the security context of a container or Pod. A field that is in no table is not on the list.
func security(f *facts, at spot, value any) {
	context := fields(value)
	for _, name := range slices.Sorted(maps.Keys(context)) {
		switch {
		case slices.Contains(harmlessInSecurity, name):
		case securityReaders[name] != nil:
			securityReaders[name](f, at, context[name])
		default:
			f.leave(at.place+".securityContext."+name, context[name])
		}
	}
}
