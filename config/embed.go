// SPDX-License-Identifier: Apache-2.0

package config

import "embed"

// Definitions are the CustomResourceDefinitions of Satchel's kinds, one file each, in the folder crd/bases.
//
//go:embed crd/bases/*.yaml
var Definitions embed.FS
