// SPDX-License-Identifier: Apache-2.0

package escalation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/inventory"
)

// pods reports new powers of the Pods of an object. A mapping with a list of
// containers counts as the spec of a Pod, so that custom resources count like Deployments.
func pods(id inventory.ID, was, will *unstructured.Unstructured, brought map[[2]string]bool) []string {
	before, after := powersOf(was), powersOf(will)
	var words []string
	for _, place := range slices.Sorted(maps.Keys(after)) {
		is, had := after[place], before[place]
		if had == nil {
			had = &powers{}
			if account := is.account; account != "" && account != defaultAccount && !brought[[2]string{id.Namespace, account}] {
				words = append(words, fmt.Sprintf("runs as the ServiceAccount %s, which the bundle does not contain", account))
			}
		} else if is.account != had.account {
			words = append(words, fmt.Sprintf("runs as the ServiceAccount %s, not %s any more", is.account, had.account))
		}
		for _, power := range slices.Sorted(maps.Keys(is.held)) {
			if !had.held[power] {
				words = append(words, power)
			}
		}
		for _, bound := range slices.SortedFunc(maps.Keys(had.bounds), bound.compare) {
			if !is.bounds[bound] && is.contains(bound) {
				words = append(words, "no longer has "+bound.text)
			}
		}
	}
	return words
}

const defaultAccount = "default"

// powers are the powers of a Pod beyond those of an ordinary one, and its restrictions.
type powers struct {
	account    string
	containers map[string]bool
	held       map[string]bool
	bounds     map[bound]bool
}

// bound is a restriction of a container, or of all of them where its name is empty.
type bound struct{ container, text string }

func (b bound) compare(other bound) int { return strings.Compare(b.text, other.text) }

func (p *powers) contains(b bound) bool { return b.container == "" || p.containers[b.container] }

// powersOf finds the specs of Pods in an object, by their path.
func powersOf(object *unstructured.Unstructured) map[string]*powers {
	found := map[string]*powers{}
	if object != nil {
		search(object.Object, "", found)
	}
	return found
}

func search(value any, place string, found map[string]*powers) {
	switch value := value.(type) {
	case map[string]any:
		if containers, ok := value["containers"].([]any); ok && len(containers) > 0 {
			found[place] = podPowers(value)
		}
		for name, child := range value {
			search(child, place+"."+name, found)
		}
	case []any:
		for i, child := range value {
			switch child.(type) {
			case map[string]any, []any:
				search(child, fmt.Sprintf("%s[%d]", place, i), found)
			}
		}
	}
}

func podPowers(spec map[string]any) *powers {
	p := &powers{account: text(spec["serviceAccountName"]), containers: map[string]bool{}, held: map[string]bool{}, bounds: map[bound]bool{}}
	if p.account == "" {
		p.account = text(spec["serviceAccount"])
	}
	if p.account == "" {
		p.account = defaultAccount
	}
	for _, name := range []string{"hostNetwork", "hostPID", "hostIPC"} {
		p.hold(isTrue(spec[name]), "uses "+name)
	}
	for _, item := range list(spec["volumes"]) {
		volume := fields(item)
		if host := fields(volume["hostPath"]); host != nil {
			p.hold(true, fmt.Sprintf("mounts %s of the node", text(host["path"])))
		}
	}
	context := fields(spec["securityContext"])
	p.security("", "", context)
	for _, item := range list(context["sysctls"]) {
		p.hold(true, "sets the sysctl "+text(fields(item)["name"]))
	}
	for _, field := range []string{"initContainers", "containers", "ephemeralContainers"} {
		for _, item := range list(spec[field]) {
			p.container(fields(item))
		}
	}
	return p
}

func (p *powers) container(container map[string]any) {
	name := text(container["name"])
	p.containers[name] = true
	prefix := "container " + name + ": "
	for _, item := range list(container["ports"]) {
		if port := fields(item)["hostPort"]; port != nil && fmt.Sprint(port) != "0" {
			p.hold(true, fmt.Sprintf("%suses port %v of the node", prefix, port))
		}
	}
	for _, item := range list(container["volumeMounts"]) {
		p.hold(text(fields(item)["mountPropagation"]) == "Bidirectional", prefix+"mounts into the node")
	}
	p.security(name, prefix, fields(container["securityContext"]))
}

// security reads the security context of a container, or of the Pod where the name is empty.
func (p *powers) security(name, prefix string, context map[string]any) {
	p.hold(isTrue(context["privileged"]), prefix+"is privileged")
	p.hold(isTrue(context["allowPrivilegeEscalation"]), prefix+"allows privilege escalation")
	p.hold(text(context["procMount"]) == "Unmasked", prefix+"sees all of /proc")
	p.hold(context["runAsUser"] != nil && fmt.Sprint(context["runAsUser"]) == "0", prefix+"runs as root")
	p.hold(isTrue(fields(context["windowsOptions"])["hostProcess"]), prefix+"runs on the node")
	for _, profile := range []string{"seccompProfile", "appArmorProfile"} {
		p.hold(text(fields(context[profile])["type"]) == "Unconfined", prefix+"has no "+profile)
		p.bind(text(fields(context[profile])["type"]) != "" && text(fields(context[profile])["type"]) != "Unconfined", name, prefix+"a "+profile)
	}
	for _, option := range []string{"type", "user", "role"} {
		if value := text(fields(context["seLinuxOptions"])[option]); value != "" {
			p.hold(true, fmt.Sprintf("%shas the SELinux %s %s", prefix, option, value))
		}
	}
	capabilities := fields(context["capabilities"])
	for _, item := range list(capabilities["add"]) {
		p.hold(true, prefix+"has the capability "+text(item))
	}
	for _, item := range list(capabilities["drop"]) {
		p.bind(true, name, prefix+"capabilities.drop "+text(item))
	}
	p.bind(isFalse(context["allowPrivilegeEscalation"]), name, prefix+"allowPrivilegeEscalation: false")
	p.bind(isTrue(context["runAsNonRoot"]), name, prefix+"runAsNonRoot: true")
}

func (p *powers) hold(holds bool, power string) {
	if holds {
		p.held[power] = true
	}
}

func (p *powers) bind(binds bool, container, what string) {
	if binds {
		p.bounds[bound{container: container, text: what}] = true
	}
}

func fields(value any) map[string]any { found, _ := value.(map[string]any); return found }

func list(value any) []any { found, _ := value.([]any); return found }

func text(value any) string { found, _ := value.(string); return found }

func isTrue(value any) bool { found, _ := value.(bool); return found }

func isFalse(value any) bool { found, is := value.(bool); return is && !found }
