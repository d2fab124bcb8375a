"""Terms that exclude each other, in English, German, Spanish and French.

A paragraph for each choice, with bars between its sides. A star stands for any ending, an underscore for a space, and a
star between underscores for up to two words.
"""

from __future__ import annotations

CHOICES = """
lov* like likes liked ador* enjoy* fond favor* favour* lieb* mag mögen mochte gefällt gefallen gern* begeistert
gusta* encanta* encantad* ama amaba adora* aime* aimait plaît adore* apprécie* raffole* | hat[eing]* dislik* detest*
loath* despis* disgust* can't_stand cannot_stand can't_bear hass* verabscheu* kann_*_nicht_leiden nicht_ausstehen
odia* detesta* aborrec* déteste* hait haïssait horreur

accept* agree* approv* said_yes took_up annahm angenommen nimmt_*_an zugestimmt stimmte_zu unterschr* unterschrieb
acept* accepte* accepté* approuv* dit_oui | reject* refus* declin* turned_*_down turned_down said_no ablehn*
abgelehnt lehnte* weiger* verweiger* rechaz* declin* rehus* negó refuse* refusé* rejet* décliné* décline*

win wins won winning victor* triumph* beat gewinn* gewann gewonnen sieg* ganó gana ganar* ganad* victoria gagn*
victoire remport* | lose loses lost losing defeat* beaten verlier* verlor* verloren unterlag niederlage perdió
pierde perder* perdid* derrot* perd perdu* perdit défaite

passed passes succeed* success* bestanden besteht bestand erfolg* geschafft aprobó aprobad* aprueba éxito réussi*
succès reçu* | fail* flunk* failure durchgefallen durch_die_prüfung gescheitert scheiter* misserfolg suspendió
suspens* suspendid* fracas* échou* échec raté*

rise rises rose risen rais* increas* grew grow* went_up gone_up higher gestieg* steig* stieg erhöh* wuchs gewachsen
zugenommen subió sube* subid* aument* creció crec* augment* mont* grandi* hauss* | fall falls fell fallen drop*
decreas* declin* shrank shrink* went_down gone_down lower sank gesunken sink* gefallen fiel verringer* geschrumpft
abgenommen bajó baja* bajad* disminu* redu* baiss* diminu* chut*

open opens opened geöffnet offen öffne* eröffne* abierto abierta abrió abre ouvert* ouvr* | close closes closed
shut* geschlossen schließ* schloss zugemacht cerrad* cerró cierra fermé* ferme fermait

big large huge enormous giant groß große großes großer riesig* grande grandes enorme gigante* immense énorme* |
small tiny little miniature klein kleine kleines kleiner winzig* pequeñ* diminut* chic* petit* minuscule*

new brand-new modern neu neue neues neuer neuen nagelneu nuev* modern* neuf neuve nouveau nouvel* | old ancient
antique alt alte altes alter alten uralt viej* antigu* vieux vieille* ancien*

happy glad cheerful delight* joy* pleased content glücklich fröhlich froh zufrieden contento contenta contentos
feliz felic* alegr* heureu* joyeu* ravi* satisf* | sad unhappy miserabl* depress* upset gloomy traurig unglücklich
unzufrieden betrübt triste* infeliz desgraciad* deprim* malheureu* mécontent* déprimé*

healthy well recover* cured healed gesund genesen geheilt erholt recuper* curad* curó guéri* rétabli* bonne_santé |
ill sick unwell worse diseas* krank erkrankt schlechter verschlechtert enferm* peor empeor* malade* souffrant*
aggrav*

early earlier früh früher temprano pronto tôt | late later spät später verspätet tarde retras* tard retard

fast quick* rapid* speed* schnell* rasch* rápid* veloz rapid* vite | slow* langsam* lent*

easy simple simpl* leicht einfach fácil* facile* | hard difficult* tough tricky schwer schwierig* difícil* dur*
difficile*

hot warm heiß warm calient* cálid* calor chaud* chaleur | cold chilly freez* icy kalt eiskalt frío fría frías fríos
froid* glac*

rich wealth* reich wohlhabend ric* adinerad* riche* fortuné* | poor broke bankrupt pleite pobre* arruin* pauvre*
ruiné*

cheap inexpensive affordable billig günstig barat* económic* bon_marché | expensive costly pricey teuer teure*
car[oa] cher chère coûteu*

start* began begin* begun took_up taken_up joined join joins anfang* angefangen fing_an begann begonnen beginn*
empez* empieza* comenz* comienza* commenc* débuté* début* | stop* quit* gave_up given_up ended finish* left leave
leaves aufgehört hör*_auf aufgegeben beend* dej* termin* abandon* renunci* arrêt* cess* fini*

keep keeps kept behält behielt behalten conserv* guarda* guardó quedó gard* gardé* | gave_*_away gave_away sold
sell* threw_*_away threw_away got_rid discard* verkauf* weggegeben verschenk* weggeworfen vend* regaló tiró jeté*
donné*

buy buys bought purchas* kauf* gekauft erworben compr* achet* achat | sell sells sold verkauf* vend*

alive survived living lebt überlebt* leb* viv[oae]* sobreviv* vivant* survécu* | dead died dies death tot starb
gestorben verstorben muerto muerta murió falleci* morte mourut décéd*

married marry wed wedding husband wife verheiratet heirat* geheiratet casad* casó boda marié* épous* mari | divorc*
single unmarried separated broke_up geschieden scheid* ledig getrennt divorci* solter* separad* célibataire* séparé*

employed works working job beschäftigt arbeitet emplead* trabaja travaille* | unemployed jobless laid_off fired
arbeitslos entlassen desemplead* paro despedid* chômage licencié*

full voll llen* plein* | empty leer leeren vací* vide*

clean saub* sauber limpi* | dirty filthy schmutz* dreckig suci*

safe secure sicher segur* sûr* | dangerous risky unsafe gefährlich riskant peligros* dangereu*

strong powerful stark* fuert* forte fort | weak feeble schwach* débil* faible*

good great excellent wonderful fantastic brilliant gut toll großartig wunderbar ausgezeichnet buen* excelente*
maravill* estupend* bon bonne excellent* merveilleu* formidable* | bad awful terribl* horribl* dreadful poor
schlecht furchtbar schrecklich mies mal[oa]* terrible* horrible* pésim* mauvais* affreu* épouvantabl*

interesting exciting thrill* fascinat* fun funny spannend interessant aufregend interesante* emocionante* divertid*
passionnant* intéressant* amusant* | boring dull tedious bored langweilig öde aburrid* pesad* ennuyeu* ennui*

quiet silent calm peaceful ruhig leise tranquil* silencios* calme* silencieu* tranquille* | loud noisy laut lärm*
ruidos* bruyant* bruit*

brave courag* mutig tapfer valient* courageu* | afraid scared coward* feig* ängstlich angst cobard* asustad* miedo
peureu* lâche* peur

trust* believ* vertrau* glaub* confía confi* cree* croit confian* | distrust* doubt* mistrust* suspicious misstrau*
zweifel* desconfí* desconfi* duda* méfi* doute*

support* backed in_favour in_favor unterstütz* dafür apoya* apoyó favor soutien* soutenu* favorable* | oppos*
against protest* dagegen gegen contra contre oppos*

remember* recall* erinner* recuerd* recordó souvien* souvenu* | forgot* forget* vergess* vergaß olvid* oubli*

arriv* came come comes ankam angekommen kam kommt llegó llega* llegad* arriv* venu* | depart* left leave* went_away
gone abgereist fuhr_ab weggefahren verließ salió sale* fue_*_se partió parti* départ quitt*

near close nearby nah nahe cerca près proche* | far distant weit fern entfernt lejos loin éloigné*

inside indoors drinnen dentro intérieur dedans | outside outdoors draußen fuera afuera extérieur dehors

always toujours immer siempre every_day daily jeden_tag täglich cada_día chaque_jour often oft souvent a_menudo |
never niemals nie nunca jamás jamais rarely selten rara_vez rarement

more mehr más | less fewer weniger menos moins

first zuerst erste* primer* premier* première* | last letzte* últim* dernier* dernière*

raise promot* befördert beförder* ascend* promu* | demot* fired dismissed sacked laid_off degradiert entlassen
gekündigt despid* despedid* licenci* renvoy*

lend lends lent loan* leiht verleih* lieh prest[aóe]* prêt* | borrow* ausgeborgt ausgeliehen pidió_prestad* emprunt*

hire hires hired eingestellt stellte_ein contrat* embauch* engag* | fire fired sacked dismissed laid_off gefeuert
entlassen gekündigt despid* despedid* licenci* vir[ée]*

praise* compliment* admir* lob* gelobt bewunder* alab* elogi* admira* félicit* | critici* blam* scold* insult*
kritis* beschimpf* getadelt tadel* critic* reproch* insult* critiqu* reproch*

help* helps helped hilft helfen geholfen ayud* aid* | harm* hurt* hinder* schad* behinder* verletz* dañ* perjudic*
nui*

vegetarian vegan vegetarier* vegetaria* végétarien* | steak meat_eater fleisch carne carnívor* viande

day daytime tagsüber día jour | night nighttime nachts nacht noche nuit

morning vormittag* morgens mañana matin | evening afternoon abend* abends nachmittag* tarde noche soir après-midi

north* nord* norte | south* süd* sud | east* ost* este | west* oeste ouest

left links izquierda gauche | right rechts derecha droite

summer sommer verano été | winter invierno hiver | spring frühling primavera printemps | autumn herbst otoño automne

black schwarz* negr* noir* | white weiß* blanc* | red rot* roj* rouge* | blue blau* azul* bleu* | green grün* verde*
vert* | yellow gelb* amarill* jaune*

brother* bruder brüder* brud* herman frère* hermano hermanos | sister* schwester* hermana hermanas sœur* soeur* |
mother* mom mum mama mutter madre mère maman | father* dad papa vater padre père | aunt* tante* tía tías | uncle*
onkel tío tíos oncle* | grandmother grandma granny oma großmutter abuela grand-mère | grandfather grandpa opa
großvater abuelo grand-père | daughter* tochter töchter hija hijas fille | son sons sohn söhne hijo hijos fils |
niece* nichte* sobrina* nièce* | nephew* neffe* sobrino* neveu* | cousin cousins vetter primo primos | cousine*
prima primas | wife ehefrau esposa épouse | husband ehemann esposo marido | neighbour* neighbor* nachbar* vecin*
voisin* | boss chef chefin jefe jefa patron patronne | colleague* coworker* kolleg* colega* collègue* | friend*
freund* amig* ami amie amis | teacher* lehrer* maestr* professeur* | girlfriend* | boyfriend*
"""
