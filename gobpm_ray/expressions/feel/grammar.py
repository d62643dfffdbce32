"""FEEL's grammar as this engine reads it (DMN 1.4, chapter 10.3), for an LALR(1) parser; text to shape, no meaning.

Names may be of several words (`Vacation Approval`): two words in a row have no other reading, so any run of words
that are no keywords is one name. Where a name itself holds a keyword or an operator, backticks keep it whole
(`` `ready and waiting` ``). Ranges written with outward brackets (`]1..5[`) are turned inward before the parser sees
them (`gobpm_ray.expressions.feel.brackets`). Left out: type declarations.
"""

GRAMMAR = r"""
start: expr
tests: test ("," test)*

?expr: or_
     | "if" expr "then" expr "else" expr                       -> if_
     | "for" iterator ("," iterator)* "return" expr            -> for_
     | SOME iterator ("," iterator)* "satisfies" expr          -> quantified
     | EVERY iterator ("," iterator)* "satisfies" expr         -> quantified
     | "function" "(" [params] ")" expr                        -> function

iterator: name "in" expr                                       -> each
        | name "in" add ".." add                               -> each_number
params: name ("," name)*

?or_: and_ | and_ ("or" and_)+                                 -> or_
?and_: cmp | cmp ("and" cmp)+                                  -> and_

?cmp: add
    | add COMPARE add                                          -> compare
    | add "between" add "and" add                              -> between
    | add "in" in_test                                         -> in_
    | add INSTANCE_OF TYPE                                     -> instance_of

?in_test: add                                                  -> test_value
        | unary
        | "(" unary ")"                                        -> test_any
        | "(" test ("," test)+ ")"                             -> test_any
?test: expr                                                    -> test_value
     | unary
unary: COMPARE add                                             -> test_compare

?add: mul | mul ((PLUS | MINUS) mul)+                          -> chain
?mul: pow | pow ((STAR | SLASH) pow)+                          -> chain
?pow: neg | neg (POW neg)+                                     -> chain
?neg: postfix | MINUS neg                                      -> negate

?postfix: atom
        | postfix "." name                                     -> path
        | postfix "[" expr "]"                                 -> filter

?atom: NUMBER                                                  -> number
     | STRING                                                  -> string
     | "@" STRING                                              -> at_literal
     | "true"                                                  -> true
     | "false"                                                 -> false
     | "null"                                                  -> null
     | name                                                    -> variable
     | call
     | "(" expr ")"
     | "[" [expr ("," expr)*] "]"                              -> list
     | "{" [entry ("," entry)*] "}"                            -> context
     | "[" add ".." add "]"                                    -> interval_closed
     | "[" add ".." add ")"                                    -> interval_open_end
     | "(" add ".." add "]"                                    -> interval_open_start
     | "(" add ".." add ")"                                    -> interval_open

call: function_name "(" [arguments] ")"
?function_name: name
              | KEYWORD_FUNCTION                               -> name
arguments: expr ("," expr)*                                    -> positional
         | named ("," named)*                                  -> by_name
named: name ":" expr
entry: name ":" expr
     | STRING ":" expr                                         -> text_entry

name: WORD+ | BACKTICKED

SOME: "some"
EVERY: "every"
COMPARE: "=" | "!=" | "<=" | ">=" | "<" | ">"
PLUS: "+"
MINUS: "-"
STAR: "*"
SLASH: "/"
POW: "**"
INSTANCE_OF.3: /instance\s+of\b/
KEYWORD_FUNCTION.3: /(date\s+and\s+time|years\s+and\s+months\s+duration|get\s+or\s+else)(?=\s*\()/
TYPE.3: /date\s+and\s+time|days\s+and\s+time\s+duration|years\s+and\s+months\s+duration|\w+/
WORD: /[^\W\d]\w*/
BACKTICKED: /`[^`\n]+`/
NUMBER: /(\d+(\.\d+)?|\.\d+)([eE][+-]?\d+)?/
STRING: /"(?:[^"\\]|\\.)*"/s

%ignore /\s+/
%ignore /\/\/[^\n]*/
%ignore /\/\*(.|\n)*?\*\//
"""

RESERVED = frozenset(
    (
        *("if", "then", "else", "for", "in", "return", "some", "every", "satisfies", "and", "or", "between"),
        *("true", "false", "null", "function", "instance"),
    )
)
