# SPDX-License-Identifier: Apache-2.0
#
# What the comments of pages use to prepare what their readers have: functions for bash.

# quietly runs a command and shows what it printed only when it fails.
quietly() {
	local output
	output=$("$@" 2>&1) || { printf '%s\n%s\n' "$*" "$output" >&2; return 1; }
}

# commit MESSAGE brings the files of the current folder to main of the repository at URL.
commit() {
	local url=$1 message=$2
	[ -d .git ] || quietly git init -b main
	git remote get-url origin >/dev/null 2>&1 || git remote add origin "$url"
	git add -A
	quietly git commit --allow-empty -m "$message"
	quietly git push -f origin main
}

# eventually COMMAND... runs a command until it succeeds, for a minute.
eventually() {
	local end=$((SECONDS + 60))
	until output=$("$@" 2>&1); do
		[ "$SECONDS" -lt "$end" ] || { printf 'in vain: %s\n%s\n' "$*" "$output" >&2; return 1; }
		sleep 0.2
	done
}

# namespace NAME creates a namespace with an account, installer, that may do everything in it.
namespace() {
	kubectl get namespace "$1" >/dev/null 2>&1 || quietly kubectl create namespace "$1"
	quietly kubectl apply -n "$1" -f - <<MANIFESTS
apiVersion: v1
kind: ServiceAccount
metadata: {name: installer}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: installer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{kind: ServiceAccount, name: installer}]
MANIFESTS
}

# installed NAME NAMESPACE is a bundle of one Deployment and one ConfigMap of that name, from Git, and ready.
installed() {
	namespace "$2"
	mkdir -p "$HOME/.fixtures/$1" && (
		cd "$HOME/.fixtures/$1"
		mkdir -p bundle
		kubectl create deployment "$1" --image="registry.example.org/$1:1.0.0" --dry-run=client -o yaml > bundle/deployment.yaml
		kubectl create configmap "$1" --from-literal=greeting=hello --dry-run=client -o yaml > bundle/configmap.yaml
		commit "$(host)/$1.git" "serve"
	)
	quietly kubectl apply -n "$2" -f - <<MANIFESTS
apiVersion: satchel.dev/v1alpha1
kind: BundleDeployment
metadata: {name: $1, labels: {team: payments}}
spec:
  serviceAccountName: installer
  source:
    sources:
    - git: {url: "$(host)/$1.git", ref: {branch: main}, path: bundle}
MANIFESTS
	quietly satchel wait "$1" -n "$2" --timeout 1m
}

# host is the address of the Git server of the examples.
host() { printf '%s' "$GIT_HOST"; }

# samples is what most pages talk about: the deployments of config/samples/templates in the namespace samples.
samples() {
	namespace samples
	mkdir -p bundles && (
		cd bundles
		cp -r "$REPOSITORY/tests/bundles/greeter" .
		commit "$(host)/bundles.git" "greet"
	)
	kubectl kustomize "$REPOSITORY/config/samples/templates" |
		sed -e "s|https://git.example.org|$GIT_HOST|; s|registry.example.org|$REGISTRY_HOST|" | quietly kubectl apply -f -
	quietly satchel wait greeter --timeout 1m
	quietly satchel wait sample-operator --timeout 1m
	installed podinfo samples
	installed gadget samples
}

# changed NAME NAMESPACE commits another content of a bundle that is installed, and waits for it.
changed() {
	greets "$1"
	quietly satchel reconcile "$1" -n "$2" --with-source
}

# pending NAME NAMESPACE makes a change wait for an approval.
pending() {
	quietly kubectl patch bundledeployment "$1" -n "$2" --type=merge -p '{"spec":{"approval":{"mode":"Manual"}}}'
	greets "$1"
	satchel reconcile "$1" -n "$2" --with-source >/dev/null 2>&1 || true
	eventually satchel approve "$1" -n "$2" --dry-run
}

# automatic NAME NAMESPACE has no change wait any more.
automatic() {
	quietly kubectl patch bundledeployment "$1" -n "$2" --type=merge -p '{"spec":{"approval":{"mode":"Automatic"}}}'
	quietly satchel wait "$1" -n "$2" --timeout 1m
}

# greets NAME commits another greeting to a repository of installed.
greets() {
	rm -rf "$HOME/.fixtures/$1" && mkdir -p "$HOME/.fixtures"
	quietly git clone "$(host)/$1.git" "$HOME/.fixtures/$1"
	(
		cd "$HOME/.fixtures/$1"
		kubectl create configmap "$1" --from-literal=greeting="hello $RANDOM$RANDOM" --dry-run=client -o yaml > bundle/configmap.yaml
		commit "$(host)/$1.git" "greet in other words"
	)
}
