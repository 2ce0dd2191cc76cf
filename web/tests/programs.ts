/** programs is the folder of the programs that the tests start. */
export const programs = process.env["PROGRAMS"] ?? "../bin";
