// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
)

// Reasons for which a function is refused.
const (
	isRandom        = "gives another value at each render"
	isClock         = "depends on the time of day"
	unknownFunction = "is not known to give the same at each render"
)

// refusals are functions that would make two renders differ; they are refused where they are run, since charts that need
// them mostly let their values be given instead.
var refusals = reasons(map[string]string{
	isRandom: `randAlphaNum randAlpha randAscii randNumeric randBytes randInt shuffle uuidv4 bcrypt htpasswd encryptAES
		genPrivateKey genCA genCAWithKey genSelfSignedCert genSelfSignedCertWithKey genSignedCert genSignedCertWithKey`,
	isClock: "now ago",
})

func reasons(names map[string]string) map[string]string {
	all := map[string]string{}
	for why, list := range names {
		for _, name := range strings.Fields(list) {
			all[name] = why
		}
	}
	return all
}

// constant are functions that take no time worth counting, whatever they are given.
var constant = words(`hello default empty ternary coalesce all any kindOf first last mustFirst mustLast
	typeOf typeIs typeIsLike kindIs add add1 sub div mod mul max min biggest floor ceil round maxf minf
	unixEpoch dateModify date_modify must_date_modify mustDateModify getHostByName lookup fail required`)

func words(list string) map[string]bool {
	all := map[string]bool{}
	for _, name := range strings.Fields(list) {
		all[name] = true
	}
	return all
}

// guards are those of all functions that are neither refused nor constant.
var guards = table(map[string]guard{
	`abbrev abbrevboth adler32sum atoi b32dec b32enc b64dec b64enc base camelcase clean contains date dateInZone date_in_zone dir
	 duration durationRound ext float64 hasPrefix hasSuffix htmlDate htmlDateInZone initials int int64 isAbs
	 kebabcase list lower mustToDate nospace omit osBase osClean osDir osExt osIsAbs pick plural
	 regexQuoteMeta sha1sum sha256sum sha512sum snakecase substr swapcase title toDate toDecimal trim
	 trimAll trimPrefix trimSuffix trimall trunc tuple untitle upper urlJoin urlParse values
	 append push prepend mustAppend mustPush mustPrepend rest mustRest initial mustInitial reverse mustReverse slice mustSlice
	 compact mustCompact buildCustomCert decryptAES`: flat,
	`quote squote cat toString toStrings sortAlpha print println html js urlquery
	 toYaml mustToYaml toYamlPretty toToml mustToToml toJson mustToJson toPrettyJson mustToPrettyJson toRawJson mustToRawJson
	 deepCopy mustDeepCopy merge mustMerge mergeOverwrite mustMergeOverwrite`: whole,
	"has mustHas deepEqual":               looked,
	"get set unset hasKey pluck dig":      keyed,
	"uniq mustUniq":                       guardPairs,
	"without mustWithout":                 guardOmitted,
	"dict":                                guardKeys,
	"concat keys":                         guardParts,
	"printf":                              guardFormat,
	"repeat":                              guardRepeat,
	"indent nindent":                      guardIndent,
	"replace":                             guardReplace,
	"join":                                guardJoin,
	"split splitList splitn":              guardSplit,
	"chunk mustChunk":                     guardChunk,
	"wrap wrapWith":                       guardWrap,
	"until":                               guardUntil,
	"untilStep":                           guardUntilStep,
	"seq":                                 guardSeq,
	"fromYaml fromYamlArray":              guardYAML,
	"fromJson mustFromJson fromJsonArray": guardParsed,
	"fromToml":                            guardTOML,
	"add1f addf subf divf mulf":           guardDecimals,
	"semver semverCompare":                guardShort,
	"derivePassword":                      guardPassword,
	"regexMatch mustRegexMatch":           guardRegex,
	"regexFind mustRegexFind":             guardRegex,
	"regexFindAll mustRegexFindAll":       guardRegexList,
	"regexSplit mustRegexSplit":           guardRegexList,
	"regexReplaceAll mustRegexReplaceAll": guardRegexReplace,
	"regexReplaceAllLiteral":              guardRegexReplace,
	"mustRegexReplaceAllLiteral":          guardRegexReplace,
})

// existing are functions that return what is there already, and make nothing.
var existing = words(`get set unset dig merge mustMerge mergeOverwrite mustMergeOverwrite slice mustSlice toDate mustToDate`)

func table(lists map[string]guard) map[string]guard {
	all := map[string]guard{}
	for list, g := range lists {
		for _, name := range strings.Fields(list) {
			all[name] = g
		}
	}
	return all
}
