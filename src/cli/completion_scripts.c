/* SPDX-License-Identifier: Apache-2.0
 * Copyright The Holdfast authors */

/* The scripts of `holdfast completion`. They know nothing of verbs and flags: each calls `holdfast __complete`. */
#include "cli/completion_internal.h"

#include "base/str.h"

#include <stddef.h>

/* Bash treats "=" and ":" as ends of words and inserts only the part behind them. So the script
 * removes the part before from each reply. */
static const char bash[] =
	"# bash completion for holdfast\n"
	"_holdfast() {\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} word piece value mark\n"
	"\tlocal -a words\n"
	"\tread -ra words <<<\"$line\"\n"
	"\t[[ $line == *[[:space:]] ]] && words+=('')\n"
	"\tword=${words[-1]} piece=${words[-1]}\n"
	"\tfor mark in = :; do\n"
	"\t\t[[ $COMP_WORDBREAKS == *\"$mark\"* ]] && piece=${piece##*\"$mark\"}\n"
	"\tdone\n"
	"\tCOMPREPLY=()\n"
	"\twhile IFS=$'\\t' read -r value _; do\n"
	"\t\tif [[ $value == :files ]]; then\n"
	"\t\t\tcompopt -o default\n"
	"\t\telse\n"
	"\t\t\tCOMPREPLY+=(\"${value#\"${word%\"$piece\"}\"}\")\n"
	"\t\tfi\n"
	"\tdone < <(\"${words[0]}\" __complete -- \"${words[@]:1}\" 2>/dev/null)\n"
	"\t[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == */ ]] && compopt -o nospace\n"
	"\treturn 0\n"
	"}\n"
	"complete -F _holdfast holdfast\n";

static const char zsh[] =
	"#compdef holdfast\n"
	"# zsh completion for holdfast\n"
	"_holdfast() {\n"
	"\tlocal line files=\n"
	"\tlocal -a replies\n"
	"\tfor line in \"${(@f)$(\"${words[1]}\" __complete -- \"${(@)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
	"\t\tcase $line in\n"
	"\t\t'') ;;\n"
	"\t\t:files) files=1 ;;\n"
	"\t\t*$'\\t'*) replies+=(\"${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}\") ;;\n"
	"\t\t*) replies+=(\"${line//:/\\\\:}\") ;;\n"
	"\t\tesac\n"
	"\tdone\n"
	"\t(( $#replies )) && _describe holdfast replies\n"
	"\t[[ -n $files ]] && _files\n"
	"}\n"
	"if [[ ${funcstack[1]-} == _holdfast ]]; then\n"
	"\t_holdfast \"$@\"\n"
	"else\n"
	"\tcompdef _holdfast holdfast\n"
	"fi\n";

static const char fish[] =
	"# fish completion for holdfast\n"
	"function __holdfast_complete\n"
	"\tset -l words (commandline -opc)\n"
	"\tset -l current (commandline -ct)\n"
	"\tfor line in ($words[1] __complete -- $words[2..-1] \"$current\" 2>/dev/null)\n"
	"\t\tif test \"$line\" = :files\n"
	"\t\t\t__fish_complete_path \"$current\"\n"
	"\t\telse\n"
	"\t\t\techo $line\n"
	"\t\tend\n"
	"\tend\n"
	"end\n"
	"complete -c holdfast -f -a '(__holdfast_complete)'\n";

const char *hf_completion_script(const char *shell)
{
	if (hf_streq(shell, "bash"))
		return bash;
	if (hf_streq(shell, "zsh"))
		return zsh;
	return hf_streq(shell, "fish") ? fish : NULL;
}
